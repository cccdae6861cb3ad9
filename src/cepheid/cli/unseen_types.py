"""Why a query found nothing: event types that it names and no event has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.pattern import Atom, walk
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery


def unseen_types(
    query: CompiledQuery, options: Options, batches: Iterable[pa.RecordBatch]
) -> Iterator[str]:
    """A sentence for each type that the query names and none of these events has."""
    stages = query.stages(options)
    made = {stage.event_type for stage in stages}
    named = {
        name: None
        for stage in stages
        for node in walk(stage.pattern)
        if isinstance(node, Atom)
        for name in node.types
        if name not in made
    }
    seen: set[str] = set()
    for batch in batches:
        seen.update(pc.unique(batch.column(options.type)).cast(pa.string()).to_pylist())
    seen.discard(None)
    for name in named:
        if name not in seen:
            near = did_you_mean(name, seen)
            yield f"no event has the type `{name}`" + (f"; {near}" if near else "")
