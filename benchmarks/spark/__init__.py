"""Spark hosts beside the same pipelines with nothing to detect."""
