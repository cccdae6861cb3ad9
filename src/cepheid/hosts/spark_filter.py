"""What a program asks of single events, as Catalyst columns that work before any shuffle.

An event is kept if it may fill some component: its type is one of that component's, and it passes
the tests that concern it alone. Tests the translation cannot take are left out, which keeps more
rows, never fewer; the engine in the workers tests again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from cepheid.algebra.expression import Absent, Expression, ScalarType, attributes, conjuncts
from cepheid.hosts.division import KeyByType
from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.hosts.spark_expression import to_filter
from cepheid.hosts.spark_sources import quoted_name
from cepheid.model.event_time import MAX_TIME
from cepheid.model.options import Options
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.sequence_plan import Component, Negation

_MICROSECONDS_PER_DAY = 86_400_000_000
_MOST_NUMBERS = 100
"""More types than this take longer to compare with than to carry."""


@dataclass(frozen=True, slots=True)
class EventTests:
    """Tests of events of one schema; `lacking` is set when they come from a table of their own.

    Then a column the table does not have is absent, and a null in one that it has is a null.
    """

    program: PreparedProgram
    schema: pa.Schema
    lacking: frozenset[str] | None = None

    @property
    def options(self) -> Options:
        """The options of the detection."""
        return self.program.options

    def has_type(self) -> Column:
        """Rows with a type."""
        return quoted(self.options.type).isNotNull()

    def has_time(self) -> Column:
        """Rows whose time is there and, but for one at the very edge, can be added to a window.

        Compared with the limits themselves, Spark would hand the test to Parquet's reader, which
        then reads column by column through its page index: twice the time for nothing.
        """
        kind = self.schema.field(self.options.end_column).type
        if not pa.types.is_int64(kind):
            return has_usable_time(self.schema, self.options)
        bits = MAX_TIME.bit_length() - 1
        time = quoted(self.options.end_column)
        return time.isNotNull() & sf.shiftright(time, bits).isin(0, -1)

    def matters(self) -> Column:
        """Usable rows that may fill a component."""
        usable = self.has_type() & self.has_time()
        types = self.program.types
        free: set[str] = set()
        ways: list[Column] = []
        for component, absent in self._components():
            way = self._may_fill(component, absent)
            if way is not None:
                ways.append(way)
            elif not component.types:
                return usable
            else:
                free.update(component.types)
        if free:
            ways.append(self.is_of(free))
        kept = reduce(or_, ways)
        # Data sources understand a plain list of types; what is more exact follows behind it.
        exact = types is None or free != set(types)
        return usable & (kept if types is None else self.is_of(types) & kept if exact else kept)

    def tests(self) -> list[Expression]:
        """The tests of single events that are part of the filter."""
        found = (
            test
            for component, absent in self._components()
            for test in conjuncts(component.test)
            if self._translates(test, absent)
        )
        return list(dict.fromkeys(found))

    def is_of(self, types: Collection[str]) -> Column:
        """Rows of these event types."""
        where = self.schema.get_field_index(self.options.type)
        column = quoted(self.options.type)
        if not (where >= 0 and pa.types.is_string(self.schema.field(where).type)):
            column = column.cast("string")
        return column.isin(*sorted(types))

    def types_worth_numbers(self) -> tuple[str, ...] | None:
        """The wanted types in order, when a type can travel as its place among them."""
        types = self.program.types
        where = self.schema.get_field_index(self.options.type)
        is_text = where >= 0 and pa.types.is_string(self.schema.field(where).type)
        return types if types is not None and is_text and len(types) <= _MOST_NUMBERS else None

    def selected(self, columns: list[str], types: tuple[str, ...] | None) -> list[Column]:
        """The columns, the type as its place in `types` where they are given."""
        chosen = []
        for name in columns:
            column = quoted(name)
            if types is not None and name == self.options.type:
                ways = sf.when(column == types[0], 0)
                for number, each in enumerate(types[1:], 1):
                    ways = ways.when(column == each, number)
                column = ways.alias(name)
            chosen.append(column)
        return chosen

    def key_columns(self, key: KeyByType) -> list[Column]:
        """The key of each row, in a form that is equal where the engine finds it equal."""
        columns = []
        for number in range(key.width):
            if key.of_any is not None:
                columns.append(self._key_value(key.of_any[number]))
                continue
            value = sf.lit(None)
            for names, types in key.groups().items():
                value = sf.when(self.is_of(types), self._key_value(names[number])).otherwise(value)
            columns.append(value)
        return columns

    def lacks_key(self, key: KeyByType) -> Column | None:
        """Which of the rows that matter lack a key attribute; None when there can be none."""
        ways = []
        for names, types in key.groups().items() if key.of else [(key.of_any or (), None)]:
            unstated = None if types is None else self._unstated(types)
            if unstated is not None and not unstated:
                continue
            missing = [way for name in names if (way := self._is_absent(name)) is not None]
            if missing:
                way = reduce(or_, missing)
                of_all = unstated is None or set(unstated) == set(self.program.types or ())
                ways.append(way if of_all else self.is_of(unstated or ()) & way)
        return reduce(or_, ways) if ways else None

    def _unstated(self, types: Collection[str]) -> list[str]:
        """Types of which the option `types` does not say what they have."""
        return [name for name in types if self.options.attributes_of(name) is None]

    def _is_absent(self, name: str) -> Column | None:
        where = self.schema.get_field_index(name)
        if self.lacking is not None and self.options.types is None:
            return sf.lit(True) if where < 0 or name in self.lacking else None
        if where < 0:
            return sf.lit(True)
        return quoted(name).isNull() if self.schema.field(where).nullable else None

    def _key_value(self, name: str) -> Column:
        where = self.schema.get_field_index(name)
        if where < 0:
            return sf.lit(None)
        match scalar_type(self.schema.field(where).type):
            case ScalarType.INT:
                return quoted(name).cast("long")
            case ScalarType.FLOAT:
                return quoted(name).cast("double") + sf.lit(0.0)  # -0.0 equals 0.0
            case _:
                return quoted(name)

    def _components(self) -> Iterator[tuple[Component | Negation, Absent]]:
        for stage in self.program.stages:
            yield from ((component, stage.plan.absent) for component in stage.plan.components)
            yield from ((negation, stage.plan.absent) for negation in stage.plan.negations)

    def _may_fill(self, component: Component | Negation, absent: Absent) -> Column | None:
        """Type and own tests of a component; None when it asks for no more than its types."""
        tests = [test for test in conjuncts(component.test) if self._translates(test, absent)]
        if not tests:
            return None
        if not component.types:
            return self._passes(tests, None, absent)
        ways = [
            self.is_of(types) & self._passes(tests, declared, absent)
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

    def _passes(
        self, tests: list[Expression], declared: tuple[str, ...] | None, absent: Absent
    ) -> Column:
        by_table = self.lacking is not None and self.options.types is None
        lacking = self.lacking or frozenset()

        def column_of(variable: str, name: str) -> Column | None:
            if self.schema.get_field_index(name) < 0 or (by_table and name in lacking):
                return None
            return quoted(name) if declared is None or name in declared else None

        null_is_absent = declared is None and not by_table
        return reduce(
            and_, (to_filter(t, column_of, self._type_of, absent, null_is_absent) for t in tests)
        )

    def _type_of(self, variable: str, name: str) -> ScalarType:
        where = self.schema.get_field_index(name)
        return ScalarType.UNKNOWN if where < 0 else scalar_type(self.schema.field(where).type)

    def _translates(self, test: Expression, absent: Absent) -> bool:
        """Whether Catalyst reads the columns of a test as the engine does."""
        if absent is Absent.ERROR:
            return False
        for _, name in attributes(test):
            where = self.schema.get_field_index(name)
            if where < 0:
                continue
            kind = self.schema.field(where).type
            if is_without_zone(kind) or scalar_type(kind) is ScalarType.UNKNOWN:
                return False
        return True


def has_usable_time(schema: pa.Schema, options: Options) -> Column:
    """Rows whose time is there and can be added to a window."""
    kind = schema.field(options.end_column).type
    column = quoted(options.end_column)
    if pa.types.is_null(kind):
        return sf.lit(False)
    if not pa.types.is_int64(kind):
        return column.isNotNull()  # no other type of Spark reaches the limit
    limit = sf.lit(MAX_TIME)
    return column.isNotNull() & (column < limit) & (column > -limit)


def time_number(schema: pa.Schema, options: Options) -> Column:
    """The time as the engine counts it: microseconds since 1970, or the integers themselves."""
    kind = schema.field(options.end_column).type
    column = quoted(options.end_column)
    if not pa.types.is_timestamp(kind):
        return column.cast("long")
    if kind.tz is not None:
        return sf.unix_micros(column)
    # A time without zone: every cast to a timestamp would read it in the session's zone.
    seconds = sf.hour(column) * 3600 + sf.minute(column) * 60
    day = sf.unix_date(column.cast("date")).cast("long") * _MICROSECONDS_PER_DAY
    part = (sf.extract(sf.lit("SECOND"), column) * 1_000_000).cast("long")
    return day + seconds.cast("long") * 1_000_000 + part


def is_without_zone(kind: Any) -> bool:
    """Whether Spark would read values of this type in the session's time zone."""
    return pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)


def quoted(name: str) -> Column:
    """The column of that very name, dots and all."""
    return sf.col(quoted_name(name))
