"""What a program asks of single events, as a Catalyst filter that runs before any shuffle.

An event is kept if it may fill some component: its type is one of that component's, and it passes
the tests that concern it alone. Tests the translation cannot take are left out, which keeps more
rows, never fewer; the engine in the workers tests again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from cepheid.algebra.expression import Expression, ScalarType, attributes, conjuncts
from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.hosts.spark_expression import to_filter
from cepheid.model.event_time import MAX_TIME
from cepheid.model.options import Options
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.sequence_plan import Component, Negation

_MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filters for events of one schema.

    `lacking` says that the events come from a table of its own: a column it does not have is
    absent, and a null in one that it has is a null.
    """

    program: PreparedProgram
    schema: pa.Schema
    own_table: bool = False

    @property
    def options(self) -> Options:
        """The options of the detection."""
        return self.program.options

    def is_usable(self) -> Column:
        """Rows that have a type and a time; the others belong into the quarantine."""
        return self.type_name().isNotNull() & self.has_time()

    def has_time(self) -> Column:
        """Rows whose time is there and can be added to a window."""
        kind = self.schema.field(self.options.end_column).type
        column = quoted(self.options.end_column)
        if pa.types.is_null(kind):
            return sf.lit(False)
        if not pa.types.is_int64(kind):
            return column.isNotNull()  # no other type reaches the limit
        limit = sf.lit(MAX_TIME)
        return column.isNotNull() & (column < limit) & (column > -limit)

    def type_name(self) -> Column:
        """The type column as a string."""
        where = self.schema.get_field_index(self.options.type)
        column = quoted(self.options.type)
        if where >= 0 and pa.types.is_string(self.schema.field(where).type):
            return column
        return column.cast("string")

    def is_of(self, types: Collection[str]) -> Column:
        """Rows of these event types."""
        return self.type_name().isin(*sorted(types))

    def matters(self) -> Column:
        """Rows that may fill a component."""
        types = self.program.types
        components = list(self.program.components())
        tested = [self._may_fill(c) for c in components]
        if types is None:
            kept = [test for test in tested if test is not None]
            return reduce(or_, kept) if len(kept) == len(tested) else sf.lit(True)
        of_types = self.is_of(types)
        if all(test is None for test in tested):
            return of_types
        free = {
            t for c, test in zip(components, tested, strict=True) if test is None for t in c.types
        }
        ways = [test for test in tested if test is not None]
        if free:
            ways.append(self.is_of(free))
        return of_types & reduce(or_, ways)

    def pushed(self) -> tuple[Expression, ...]:
        """The own tests that are part of the filter, for `explain`."""
        return tuple(
            test
            for component in self.program.components()
            for test in conjuncts(component.test)
            if self._translates(test)
        )

    def _may_fill(self, component: Component | Negation) -> Column | None:
        """Type and own tests of a component; None when it asks for no more than its types."""
        tests = [test for test in conjuncts(component.test) if self._translates(test)]
        if not tests:
            return None
        if not component.types:
            return self._passes(tests, None)
        ways = [
            self.is_of(types) & self._passes(tests, declared)
            for declared, types in self._by_declaration(component.types)
        ]
        return reduce(or_, ways)

    def _by_declaration(
        self, types: Collection[str]
    ) -> list[tuple[tuple[str, ...] | None, list[str]]]:
        """Types by the attributes that the option `types` says they have."""
        groups: dict[tuple[str, ...] | None, list[str]] = {}
        for name in types:
            declared = self.options.attributes_of(name)
            groups.setdefault(None if declared is None else tuple(declared), []).append(name)
        return list(groups.items())

    def _passes(self, tests: list[Expression], declared: tuple[str, ...] | None) -> Column:
        def column_of(variable: str, name: str) -> Column | None:
            if self.schema.get_field_index(name) < 0:
                return None
            return quoted(name) if declared is None or name in declared else None

        absent = self.program.stages[0].plan.absent
        own_table = self.own_table and self.options.types is None
        return reduce(
            and_,
            (
                to_filter(
                    test, column_of, self._type_of, absent, declared is None and not own_table
                )
                for test in tests
            ),
        )

    def _type_of(self, variable: str, name: str) -> ScalarType:
        where = self.schema.get_field_index(name)
        return ScalarType.UNKNOWN if where < 0 else scalar_type(self.schema.field(where).type)

    def _translates(self, test: Expression) -> bool:
        """Whether Catalyst reads the columns of a test as the engine does."""
        for _, name in attributes(test):
            where = self.schema.get_field_index(name)
            if where < 0:
                continue
            kind = self.schema.field(where).type
            if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
                return False  # Spark would read them in the session's time zone
            if scalar_type(kind) is ScalarType.UNKNOWN:
                return False
        return True


def quoted(name: str) -> Column:
    """The column of that very name, dots and all."""
    escaped = name.replace("`", "``")
    return sf.col(f"`{escaped}`")
