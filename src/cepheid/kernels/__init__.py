"""Compiled kernels: arrays in, arrays out; numba is known only here, and the algebra is not."""
