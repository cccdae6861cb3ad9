"""Hosts drive the kernels: in process, on Spark over any DataFrame, over files, over streams."""
