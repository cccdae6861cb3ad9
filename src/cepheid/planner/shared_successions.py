"""Many queries of successors as one graph, in which equal operators exist once.

Queries differ in the names of their variables, in what they return and in where they stand in a
pattern; none of that is seen by an operator. So whatever has the same canonical form is one
operator, used by all queries that have it. What comes out at a query's root is renamed to the
query's own variables.

A graph may also be cut (cut_patterns): one finds the composites of some parts, which become an
operator without operands in others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cepheid.algebra.expression import Expression, ScalarType
from cepheid.algebra.pattern import Atom, Except, Pattern, Union, walk
from cepheid.kernels.succession_shape import (
    Given,
    Leaf,
    Operator,
    SuccessionShape,
    operands_of,
)
from cepheid.model.errors import OptionError
from cepheid.planner.canonical_succession import CanonicalForms
from cepheid.planner.cut_patterns import uses
from cepheid.planner.dispatch import Dispatcher
from cepheid.planner.pattern_label import label_of
from cepheid.planner.prepare import Prepared
from cepheid.planner.succession_layout import ALONE, Above, OperatorBuilder, SuccessionLayout
from cepheid.planner.succession_plan import SuccessionPlan, shared_key


@dataclass(frozen=True, slots=True)
class SharedOperator:
    """One operator of the graph: its canonical text, its operands and the queries that use it.

    `label` is for people, in the words of the query that was there first. `types` are the event
    types that an atom reads.
    """

    text: str
    operands: tuple[int, ...]
    queries: tuple[int, ...]
    label: str
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryInGraph:
    """Where a query's matches come out, and what it calls the variables they have there.

    `key` is the attribute of each variable by which the query's events divide into separate
    streams, if there is one (succession_plan.shared_key).
    """

    root: int
    names: tuple[int, ...]
    key: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class SharedSuccessions:
    """The graph as a kernel runs it, and what there is to tell about it.

    `unshared` is how many operators the queries would have each for itself. `given` are the parts
    whose composites come from elsewhere, each with the atom that the last event of one touches.
    """

    layout: SuccessionLayout
    operators: tuple[SharedOperator, ...]
    queries: tuple[QueryInGraph, ...]
    unshared: int
    given: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartsGraph:
    """A graph that finds composites for others: `roots` has the operator of each part."""

    layout: SuccessionLayout
    roots: tuple[int, ...]


def share_successions(
    queries: Sequence[Prepared], types: Mapping[str, ScalarType], given: Collection[str] = ()
) -> SharedSuccessions:
    """One graph for several queries with the same options, over columns of these types.

    The composites of the parts `given`, canonical texts, come from elsewhere.
    """
    return _graph(queries, types, given).build()


def parts_graph(
    queries: Sequence[Prepared], types: Mapping[str, ScalarType], parts: Sequence[str]
) -> PartsGraph:
    """The graph that finds these parts of the queries, canonical texts, and nothing else."""
    return _graph(queries, types, ()).build_parts(parts)


def _graph(
    queries: Sequence[Prepared], types: Mapping[str, ScalarType], given: Collection[str]
) -> _Graph:
    _refuse_other_options(queries)
    return _Graph(
        [succession_of(each) for each in queries],
        lambda name: types.get(name, ScalarType.UNKNOWN),
        frozenset(given),
    )


def succession_of(prepared: Prepared) -> SuccessionPlan:
    """The plan of a query of successors."""
    assert isinstance(prepared.plan, SuccessionPlan)
    return prepared.plan


def union_of(plans: Sequence[SuccessionPlan]) -> SuccessionPlan:
    """What all queries ask together: for those who want to know how long an event matters."""
    windows = [plan.window for plan in plans]
    bounded = [window for window in windows if window is not None]
    return SuccessionPlan(
        Union(tuple(plan.pattern for plan in plans)),
        tuple(component for plan in plans for component in plan.components),
        (),
        frozenset(),
        max(bounded) if len(bounded) == len(windows) else None,
        plans[0].absent,
        max(plan.delay for plan in plans),
    )


def _refuse_other_options(queries: Sequence[Prepared]) -> None:
    """Parameters are part of the pattern by now; everything else must be the same."""
    first = replace(queries[0].options, params={})
    for each in queries:
        if replace(each.options, params={}) != first:
            raise OptionError.of(
                "mixed-options",
                f"`{each.form.name}` has other options than `{queries[0].form.name}`",
                help="queries that run together read the same events in the same way",
            )


class _Graph(OperatorBuilder):
    """All operators of several plans; variables are numbered anew in every part of a pattern."""

    def __init__(
        self,
        plans: Sequence[SuccessionPlan],
        type_of_column: Callable[[str], ScalarType],
        given: frozenset[str],
    ) -> None:
        super().__init__(type_of_column)
        self._plans = plans
        self._forms = CanonicalForms()
        self._by_text: dict[str, int] = {}
        self._labels: list[str] = []
        self._atoms: list[tuple[tuple[str, ...], Expression]] = []
        self._wanted = given
        self._given: dict[str, Pattern] = {}

    def build(self) -> SharedSuccessions:
        places = []
        for plan in self._plans:
            form = self._forms.add_query(plan.pattern)
            number_of = {c.variable: n for n, c in enumerate(plan.components)}
            names = tuple(number_of[name] for name in form.variables)
            places.append(QueryInGraph(self.operator(plan.pattern), names, shared_key(plan)))
        given = {text: len(self._atoms) + number for number, text in enumerate(self._given)}
        for text, atom in given.items():
            self.operators[self._by_text[text]] = Given(atom)
        layout = self._layout(tuple(dict.fromkeys(place.root for place in places)))
        unshared = sum(1 for each in self._plans for _ in walk(each.pattern))
        return SharedSuccessions(layout, self._told(places), tuple(places), unshared, given)

    def build_parts(self, parts: Sequence[str]) -> PartsGraph:
        wanted = frozenset(parts)
        for plan in self._plans:
            self._forms.add_query(plan.pattern)
            for node, above in uses(plan.pattern, self._forms, wanted):
                self.operator(node, above)
        roots = tuple(self._by_text[text] for text in parts)
        return PartsGraph(self._layout(roots), roots)

    def _layout(self, roots: tuple[int, ...]) -> SuccessionLayout:
        plan = union_of(self._plans)
        dispatcher = Dispatcher(self._atoms, plan.absent)
        # The events of given composites touch no atom, but what they lack depends on their types.
        named = (a for part in self._given.values() for a in walk(part) if isinstance(a, Atom))
        others = {name: dispatcher.number_of_any for atom in named for name in atom.types}
        return SuccessionLayout(
            plan,
            SuccessionShape(tuple(self.operators), roots),
            self.columns,
            tuple(self.conditions.computed),
            {**others, **dispatcher.type_numbers},
            dispatcher.number_of_any,
            (),
            tuple(self.conditions.ints),
            tuple(self.conditions.floats),
            self.most,
            dispatcher=dispatcher,
            orders_strings=self.conditions.orders_strings,
        )

    def operator(self, node: Pattern, above: Above = ALONE) -> int:
        text = self._forms.of(node).text
        if text not in self._wanted:
            return super().operator(node, above)
        known = self.known(node)
        if known is not None:
            return known
        self._given[text] = node
        return self.add(node, Given(-1))  # atoms are counted when all others are known

    def _told(self, places: list[QueryInGraph]) -> tuple[SharedOperator, ...]:
        users: list[set[int]] = [set() for _ in self.operators]
        for query, place in enumerate(places):
            users[place.root].add(query)
        for number in reversed(range(len(self.operators))):  # users come behind operands
            for operand in operands_of(self.operators[number]):
                users[operand] |= users[number]
        return tuple(
            SharedOperator(
                text, operands_of(operator), tuple(sorted(of)), label, self._types(operator)
            )
            for text, operator, of, label in zip(
                self._by_text, self.operators, users, self._labels, strict=True
            )
        )

    def _types(self, operator: Operator) -> tuple[str, ...]:
        return self._atoms[operator.atom][0] if isinstance(operator, Leaf) else ()

    def numbers(self, node: Pattern) -> Mapping[str, int]:
        return self._forms.of(node).numbers

    def known(self, node: Pattern) -> int | None:
        return self._by_text.get(self._forms.of(node).text)

    def add(self, node: Pattern, operator: Operator) -> int:
        number = super().add(node, operator)
        self._by_text[self._forms.of(node).text] = number
        self._labels.append(label_of(node))
        return number

    def atom(self, node: Atom) -> int:
        self._atoms.append((node.types, node.predicate))
        return len(self._atoms) - 1

    def reports(self, node: Except) -> bool:
        return self._forms.reports(node)
