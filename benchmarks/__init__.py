"""What cepheid promises in speed, measured beside the limits and the tools it is compared with."""

import os

# Polars reads its number of threads when it is first imported; all comparisons are on one core.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
