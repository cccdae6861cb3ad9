"""Generated events and queries: the papers' workloads and the stories of the examples."""

from cepheid.generate.medicine import MedicineParameters, MedicineRecord, generate_medicine
from cepheid.generate.queries import QueryParameters, generate_queries
from cepheid.generate.store import Store, StoreParameters, generate_store
from cepheid.generate.streams import (
    StreamParameters,
    generate_batches,
    generate_stream,
    stream_schema,
)
from cepheid.generate.writing import write_events

__all__ = [
    "MedicineParameters",
    "MedicineRecord",
    "QueryParameters",
    "Store",
    "StoreParameters",
    "StreamParameters",
    "generate_batches",
    "generate_medicine",
    "generate_queries",
    "generate_store",
    "generate_stream",
    "stream_schema",
    "write_events",
]
