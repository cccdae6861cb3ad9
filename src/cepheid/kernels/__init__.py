"""Compiled kernels: arrays in, arrays out; the only place that knows numba, and it knows no algebra."""
