"""Which parts of queries run apart from them, so that their composites cross from node to node.

A part that several queries have in common (cut_patterns) may run once, on one node, in place of
every node that needs it: then its composites travel, each once to every node with a query that uses
it (NEXT, section 4.4: reuse and the traffic between nodes). It pays where the part is costly and
its composites are rare. Nothing crosses in the middle of a batch, so the parts are a stage of their
own, and what lies below a part runs with it: no plan has more than these two stages.

Cuts are made if the plan costs less by the paper's sum: the traffic, and for every operator its own
load and that of the others on its node. And the busiest nodes of both stages together must have
clearly less to do than the busiest one without cuts, counted as in key_parallel: they decide when a
batch is over, and a stage has costs of its own. Events that reach a node are traffic here, since on
Spark each of them is moved; a composite counts for as many events as it has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cepheid.algebra.expression import conjuncts
from cepheid.algebra.pattern import Atom, Pattern, Within, bound_variables, operands, walk
from cepheid.model.strategy import Strategy
from cepheid.planner.canonical_succession import CanonicalForms
from cepheid.planner.cut_patterns import may_be_cut, texts_kept, uses
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.planner.operator_graph import Operator, source_name
from cepheid.planner.query_operators import query_operators, source_rates
from cepheid.statistics.next_costs import NextCosts, NotCosted

_UNKNOWN_RATE = 1.0
_WORTH_A_STAGE = 0.8
"""Of what the busiest node has to do, no more than this may be left for a stage to be added.

A stage starts tasks and reads the events again, and estimates are not that exact.
"""


@dataclass(frozen=True, slots=True)
class Placeable:
    """A query by the patterns of its stages; one of successors has one, which may be cut."""

    patterns: tuple[Pattern, ...]
    is_cuttable: bool


@dataclass(frozen=True, slots=True)
class CutPart:
    """A part that runs on `node`, and what is estimated of it per unit of time.

    `rate` counts its composites, `handled` what finding them costs, `carried` what they cost every
    node that gets them.
    """

    text: str
    node: int
    rate: float
    handled: float
    carried: float


@dataclass(frozen=True, slots=True)
class CutPlacement:
    """The node of each query, and the parts that are found apart from them.

    `busiest` is the estimate for the busiest nodes of both stages, `uncut` that without cuts; they
    rest on rates that were given, or on `equal_rates` of all types.
    """

    nodes: tuple[int, ...]
    parts: tuple[CutPart, ...]
    busiest: float
    uncut: float
    equal_rates: bool


class _Load(NamedTuple):
    """What a node does: its operators, the events they handle, and events that come or go."""

    operators: int
    handled: float
    moved: float


def _busiest(loads: Sequence[_Load]) -> float:
    return max(each.handled + each.moved for each in loads)


def _cost(loads: Sequence[_Load]) -> float:
    """Every operator pays the load of all on its node."""
    return sum(each.operators * each.handled + each.moved for each in loads)


def place_with_cuts(
    queries: Sequence[Placeable],
    whole: Sequence[int],
    nodes: int,
    costs: NextCosts | None,
    strategy: Strategy = Strategy.GREEDY,
) -> CutPlacement | None:
    """The cuts to make, if any; `whole` are the nodes of the queries without them."""
    if nodes < 2 or strategy is Strategy.GREEDY_WITHOUT_REUSE:
        return None  # what is not reused gains nothing by waiting for another stage
    placing = _Placing(queries, whole, nodes, costs)
    return placing.greedy() if strategy is Strategy.GREEDY else placing.round_robin()


@dataclass(slots=True)
class _Placing:
    queries: Sequence[Placeable]
    whole: Sequence[int]
    nodes: int
    costs: NextCosts | None
    _forms: CanonicalForms = field(init=False, default_factory=CanonicalForms)
    _parts: dict[str, Pattern] = field(init=False, default_factory=dict)
    _known: NextCosts = field(init=False)
    _rates: dict[str, float] = field(init=False)
    _of_parts: dict[str, CutPart] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Find the parts that may be cut, by text."""
        patterns = [pattern for query in self.queries for pattern in query.patterns]
        types = {t for p in patterns for a in walk(p) if isinstance(a, Atom) for t in a.types}
        self._known = self.costs or NextCosts(dict.fromkeys(types, _UNKNOWN_RATE))
        self._rates = source_rates(patterns, self.costs)
        kept: set[str] = set()
        for pattern in self._cuttable():
            self._forms.add_query(pattern)
            kept.update(texts_kept(pattern, self._forms))
        for pattern in self._cuttable():
            for node in walk(pattern):
                text = self._forms.of(node).text
                if text not in kept and text not in self._parts and may_be_cut(node):
                    self._parts[text] = node

    def _cuttable(self) -> Iterator[Pattern]:
        return (query.patterns[0] for query in self.queries if query.is_cuttable)

    # -- by costs -------------------------------------------------------------------------------

    def greedy(self) -> CutPlacement | None:
        """All parts that are cheaper to carry than to find, or only those that save work."""
        cuts = self._used_by_several(
            {text for text in self._shared() if self._is_cheaper_to_carry(text)}
        )
        whole = self._loads([self._operators(each, ()) for each in self.queries], self.whole)
        uncut = _busiest(whole)
        best: CutPlacement | None = None
        while cuts:
            left = [self._operators(each, cuts) for each in self.queries]
            at = self._placed(left)
            texts = self._in_order(cuts)
            places = self._placed([self._operators_of(self._parts[text], ()) for text in texts])
            first, then = self._loads_of_parts(texts, places), self._loads(left, at)
            busiest = _busiest(first) + _busiest(then)
            costs_less = _cost(first) + _cost(then) < _cost(whole)
            is_worth_it = costs_less and busiest < _WORTH_A_STAGE * uncut
            if is_worth_it and (best is None or busiest < best.busiest):
                best = self._told(at, dict(zip(texts, places, strict=True)), busiest, uncut)
            paying = self._paying(cuts, at)
            if paying == cuts:
                break
            cuts = self._used_by_several(paying)
        return best

    def _shared(self) -> list[str]:
        """The parts that more than one query has."""
        users: dict[str, int] = {}
        for pattern in self._cuttable():
            for text in {self._forms.of(node).text for node in walk(pattern)}:
                users[text] = users.get(text, 0) + 1
        return [text for text, count in users.items() if count > 1 and text in self._parts]

    def _is_cheaper_to_carry(self, text: str) -> bool:
        part = self._parts[text]
        if isinstance(self._known.of(part), NotCosted):
            return False  # nobody knows how many composites there would be
        estimate = self._estimate(text)
        return estimate.carried < estimate.handled

    def _used_by_several(self, cuts: set[str]) -> set[str]:
        """The cuts that several queries need when each is cut at its largest parts."""
        while True:
            users: dict[str, int] = {}
            for pattern in self._cuttable():
                found = {self._forms.of(node).text for node, _ in uses(pattern, self._forms, cuts)}
                for text in found:
                    users[text] = users.get(text, 0) + 1
            several = {text for text, count in users.items() if count > 1}
            if several == cuts:
                return cuts
            cuts = several

    def _paying(self, cuts: set[str], at: Sequence[int]) -> set[str]:
        """The cuts for which finding once and carrying is less than finding where it is used."""
        using: dict[str, set[int]] = {}
        for query, node in zip(self.queries, at, strict=True):
            if query.is_cuttable:
                for part, _ in uses(query.patterns[0], self._forms, cuts):
                    using.setdefault(self._forms.of(part).text, set()).add(node)
        paying = set()
        for text, nodes in using.items():
            once, carried = self._estimate(text).handled, self._estimate(text).carried
            if once + (1 + len(nodes)) * carried < len(nodes) * once:
                paying.add(text)
        return paying

    def _placed(self, queries: Sequence[Sequence[Operator]]) -> list[int]:
        placement = FusedPlacement(self.nodes)
        found = []
        for number, operators in enumerate(queries):
            place = placement.choose(operators)
            placement.put(str(number), place, operators)
            found.append(place.node)
        return found

    def _loads(
        self,
        queries: Sequence[Sequence[Operator]],
        at: Sequence[int],
        sent: Sequence[float] | None = None,
    ) -> list[_Load]:
        """What each node has to do; `sent` is what has to be written besides."""
        loads = []
        for node in range(self.nodes):
            own = [n for n, place in enumerate(at) if place == node]
            handled = {each.canonical: each.cpu for n in own for each in queries[n]}
            moved = self._read(each for n in own for each in queries[n])
            moved += sum(sent[n] for n in own) if sent else 0.0
            loads.append(_Load(len(handled), sum(handled.values()), moved))
        return loads

    def _loads_of_parts(self, texts: Sequence[str], places: Sequence[int]) -> list[_Load]:
        """What a part finds has to be written once before it reaches anybody."""
        operators = [self._operators_of(self._parts[text], ()) for text in texts]
        return self._loads(operators, places, [self._estimate(text).carried for text in texts])

    def _read(self, operators: Iterator[Operator]) -> float:
        names = {o for each in operators for o in each.operands if isinstance(o, str)}
        return sum(self._rates.get(name, 0.0) for name in names)

    # -- one operator after the other -----------------------------------------------------------

    def round_robin(self) -> CutPlacement | None:
        """Each operator on the next node; what its user on another node needs of it is carried."""
        count = 0
        at: list[int] = []
        places: dict[str, int] = {}

        def turn(node: Pattern, taken: dict[int, int]) -> None:
            nonlocal count
            for each in operands(node):
                turn(each, taken)
            if not isinstance(node, Atom):
                taken[id(node)] = count % self.nodes
                count += 1

        def cut(node: Pattern, root: int, taken: dict[int, int]) -> None:
            text = self._forms.of(node).text
            if text in self._parts and taken[id(node)] != root:
                places.setdefault(text, taken[id(node)])
                return
            for each in operands(node):
                cut(each, root, taken)

        for query in self.queries:
            if not query.is_cuttable:
                at.append(count % self.nodes)
                count += 1
                continue
            taken: dict[int, int] = {}
            turn(query.patterns[0], taken)
            root = taken.get(id(query.patterns[0]), count % self.nodes)
            at.append(root)
            cut(query.patterns[0], root, taken)
        used = {
            self._forms.of(node).text
            for pattern in self._cuttable()
            for node, _ in uses(pattern, self._forms, places)
        }
        if not used:
            return None
        chosen = {text: node for text, node in places.items() if text in used}
        first = self._loads_of_parts(list(chosen), list(chosen.values()))
        then = self._loads([self._operators(each, used) for each in self.queries], at)
        whole = self._loads([self._operators(each, ()) for each in self.queries], self.whole)
        return self._told(at, chosen, _busiest(first) + _busiest(then), _busiest(whole))

    # -- estimates ------------------------------------------------------------------------------

    def _estimate(self, text: str) -> CutPart:
        known = self._of_parts.get(text)
        if known is None:
            part = self._parts[text]
            found = self._operators_of(part, ())
            handled = sum({o.canonical: o.cpu for o in found}.values()) + self._read(iter(found))
            rate = found[-1].rate
            carried = rate * len(bound_variables(part))
            known = self._of_parts[text] = CutPart(text, -1, rate, handled, carried)
        return known

    def _operators(self, query: Placeable, cuts: Collection[str]) -> Sequence[Operator]:
        if not query.is_cuttable:
            return query_operators(query.patterns, self.costs)
        return self._operators_of(query.patterns[0], cuts)

    def _operators_of(self, pattern: Pattern, cuts: Collection[str]) -> list[Operator]:
        """The operators of a pattern; of its cut parts nothing but what arrives of them."""
        found: list[Operator] = []

        def put(make: Callable[[int], Operator]) -> int:
            found.append(make(len(found)))
            return len(found) - 1

        def add(node: Pattern) -> int | str:
            text = self._forms.of(node).text
            if text in cuts:
                part = self._estimate(text)
                arrives = f"given {text}"
                return put(lambda n: Operator(n, arrives, (), part.rate, part.carried))
            if isinstance(node, Within):
                return add(node.pattern)
            if isinstance(node, Atom) and not conjuncts(node.predicate):
                return source_name(node)
            below = tuple(add(each) for each in operands(node))
            if isinstance(node, Atom):
                below = (source_name(node),)
            traffic = self._known.of(node)
            if isinstance(traffic, NotCosted):
                rates = [
                    self._rates.get(o, 0.0) if isinstance(o, str) else found[o].rate for o in below
                ]
                rate, cpu = min(rates), sum(rates)
            else:
                rate, cpu = traffic.rate, traffic.cpu
            return put(lambda n: Operator(n, text, below, rate, cpu))

        root = add(pattern)
        if isinstance(root, str):  # it is all of a source
            rate = self._rates.get(root, 0.0)
            found.append(Operator(0, root, (root,), rate, rate))
        return found

    def _in_order(self, cuts: Collection[str]) -> list[str]:
        """The cuts as the queries come."""
        found = (
            self._forms.of(node).text
            for pattern in self._cuttable()
            for node, _ in uses(pattern, self._forms, cuts)
        )
        return list(dict.fromkeys(found))

    def _told(
        self, at: Sequence[int], places: dict[str, int], busiest: float, uncut: float
    ) -> CutPlacement:
        parts = []
        for text, node in places.items():
            known = self._estimate(text)
            parts.append(CutPart(text, node, known.rate, known.handled, known.carried))
        return CutPlacement(tuple(at), tuple(parts), busiest, uncut, self.costs is None)
