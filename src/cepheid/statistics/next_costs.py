"""What a pattern of NEXT costs to run: rates, detection times and bursts (DEBS 2009, section 4.2).

Costs are events handled per unit of time, worst case, and are good for comparing plans only. The
unit is that of the rates. `mode="paper"` is table 1 as printed, `mode="corrected"` mends what
contradicts the paper's own text; each difference stands where it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, TypeAlias

from cepheid.algebra.expression import Expression, conjuncts
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    walk,
)
from cepheid.model.errors import OptionError
from cepheid.statistics.event_statistics import EventStatistics
from cepheid.statistics.selectivity import selectivity
from cepheid.statistics.union_tree import UnionTree, fold_tree, huffman_tree, written_tree

Mode: TypeAlias = Literal["paper", "corrected"]

_LEAST_SHARE = 1e-6
"""A filter that passes nothing by the statistics still passes something to-morrow."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What leaves a pattern, and what it costs to make it.

    `rate` is mu, `detection_time` DT, `burst_size` b and `burst_rate` r of the paper; `cpu` is the
    cost of the operator alone and `cost` that of all operators up to it.
    """

    rate: float
    detection_time: float
    burst_size: float
    burst_rate: float
    cpu: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class NotCosted:
    """Why the model says nothing about a pattern; such a pattern keeps the shape it has."""

    reason: str


def source(rate: float) -> Traffic:
    """A stream of single events, Poisson distributed."""
    return Traffic(rate, 1 / rate, 1.0, rate)


def filtered(inner: Traffic, share: float = 1.0) -> Traffic:
    """`E` with a condition that a share of its events passes.

    The paper takes the share as 1 (section 4.2, assumption 3). A smaller one thins each burst: the
    bursts of which nothing is left are gone, and what the others keep is their new size, so that
    size times rate is still the rate of events.
    """
    share = max(share, _LEAST_SHARE)
    kept = 1 - (1 - share) ** inner.burst_size if share < 1 else 1.0
    return Traffic(
        inner.rate * share,
        inner.detection_time / kept,
        inner.burst_size * share / kept,
        inner.burst_rate * kept,
        inner.rate,
        inner.cost + inner.rate,
    )


def merged(first: Traffic, second: Traffic, mode: Mode = "corrected") -> Traffic:
    """`E1 | E2`.

    Table 1 prints b1 r1 + b2 r2 as burst size; that is a number of events per time. Divided by the
    number of bursts per time it is the mean size.
    """
    burst_rate = first.burst_rate + second.burst_rate
    events = first.burst_size * first.burst_rate + second.burst_size * second.burst_rate
    cpu = first.rate + second.rate
    return Traffic(
        first.rate + second.rate,
        1 / burst_rate,
        events if mode == "paper" else events / burst_rate,
        burst_rate,
        cpu,
        first.cost + second.cost + cpu,
    )


def followed(first: Traffic, second: Traffic, mode: Mode = "corrected") -> Traffic:
    """`E1 ; E2`.

    Table 1 prints b1 r1 DT2 as burst size; where E1 is the rarer that is less than one E1 burst,
    though each burst of E1 leaves whole. What gathers is what came between two bursts that leave,
    and these are max(DT1, DT2) apart.
    """
    apart = max(first.detection_time, second.detection_time)
    gathering = second.detection_time if mode == "paper" else apart
    waiting = second.detection_time / first.detection_time * first.burst_size
    unmatched = max(second.burst_rate - first.burst_rate, 0.0)
    cpu = (
        first.rate + waiting * second.burst_size * second.burst_rate + unmatched * second.burst_size
    )
    return Traffic(
        first.rate,
        first.detection_time + second.detection_time,
        first.burst_size * first.burst_rate * gathering,
        1 / apart,
        cpu,
        first.cost + second.cost + cpu,
    )


def guarded(inner: Traffic, negated: Traffic) -> Traffic:
    """`E1 \\ E2`: it reads both, and at worst nothing is cancelled."""
    cpu = inner.rate + negated.rate
    return replace(inner, cpu=cpu, cost=inner.cost + negated.cost + cpu)


def delayed(inner: Traffic, delay: float, mode: Mode = "corrected") -> Traffic:
    """`E @ delay`.

    Table 1 adds the delay to the detection time, the text does not; matches are as far apart after
    a delay as they were before it.
    """
    time = inner.detection_time + (delay if mode == "paper" else 0.0)
    return replace(inner, detection_time=time, cpu=inner.rate, cost=inner.cost + inner.rate)


@dataclass(frozen=True, slots=True)
class NextCosts:
    """The cost model over known rates: of types, or from statistics that also know selectivities.

    >>> from cepheid.algebra.text import from_text
    >>> costs = NextCosts({"A": 10, "B": 3})
    >>> costs.of(from_text("Next(Atom([A], a), Atom([B], b))")).cost
    20.0
    >>> costs.of(from_text("Plus(Atom([A], a))")).reason
    'an iteration has no bound on its matches'
    """

    rates: Mapping[str, float] | EventStatistics
    mode: Mode = "corrected"

    def __post_init__(self) -> None:
        """Refuse a mode or a rate that is none."""
        if self.mode not in ("paper", "corrected"):
            raise OptionError.of(
                "bad-cost-mode",
                f"the cost model {self.mode!r} is not known",
                help='write "paper" or "corrected"',
            )
        if isinstance(self.rates, EventStatistics):
            return
        for name, rate in self.rates.items():
            if not _is_rate(rate):
                raise OptionError.of(
                    "bad-rate",
                    f"the rate of `{name}` is {rate!r}",
                    help="a rate is a number of events per unit of time, from 0",
                )

    def of(self, pattern: Pattern, *, unions_as_written: bool = False) -> Traffic | NotCosted:
        """The traffic of a pattern, or why it has none.

        A union of several patterns is merged along Huffman's tree, which is how it is run; or from
        left to right, to tell what rewriting has gained.
        """
        match pattern:
            case Atom():
                return self._atom(pattern)
            case Filter() | Within() | Timer():
                inner = self.of(pattern.pattern, unions_as_written=unions_as_written)
                return inner if isinstance(inner, NotCosted) else self._one(pattern, inner)
            case Next() | Except():
                first, second = (
                    (pattern.first, pattern.second)
                    if isinstance(pattern, Next)
                    else (pattern.pattern, pattern.negated)
                )
                left = self.of(first, unions_as_written=unions_as_written)
                right = self.of(second, unions_as_written=unions_as_written)
                if isinstance(left, NotCosted):
                    return left
                if isinstance(right, NotCosted):
                    return right
                if isinstance(pattern, Except):
                    return guarded(left, right)
                return followed(left, right, self.mode)
            case Union(patterns):
                return self._union(patterns, unions_as_written)
            case Plus():
                # Section 4.2 leaves its cost to future work: the worst case is unbounded.
                return NotCosted("an iteration has no bound on its matches")
            case _:
                return NotCosted(f"the cost of {type(pattern).__name__} is not modelled")

    def union_tree(self, node: Union) -> UnionTree | NotCosted:
        """How the patterns of a union are merged at least cost."""
        found = self._operands(node.patterns, False)
        if isinstance(found, NotCosted):
            return found
        return huffman_tree([each.rate for each in found])

    def _atom(self, atom: Atom) -> Traffic | NotCosted:
        if isinstance(self.rates, EventStatistics):
            rate = self.rates.rate(atom.types)
        else:
            rate = float(sum(self.rates.get(name, 0) for name in atom.types or self.rates))
        if not rate > 0:
            named = f"type {', '.join(atom.types)}" if atom.types else "any type"
            return NotCosted(f"no rate is known of events of {named}")
        if not conjuncts(atom.predicate):
            return source(rate)
        return filtered(source(rate), self._share(atom.predicate, atom))

    def _one(self, node: Filter | Within | Timer, inner: Traffic) -> Traffic | NotCosted:
        match node:
            case Filter():
                return filtered(inner, self._share(node.predicate, node.pattern))
            case Within():
                # A condition of the operator below it, and conditions cost nothing (assumption 2).
                return inner
            case Timer(_, delay):
                if isinstance(delay, int):
                    return delayed(inner, delay, self.mode)
                if self.mode == "corrected":
                    return delayed(inner, 0.0)
                return NotCosted("a delay has no length in the time column's unit yet")

    def _union(self, patterns: tuple[Pattern, ...], as_written: bool) -> Traffic | NotCosted:
        found = self._operands(patterns, as_written)
        if isinstance(found, NotCosted):
            return found
        tree = (
            written_tree(len(found)) if as_written else huffman_tree([each.rate for each in found])
        )
        return fold_tree(
            tree, found.__getitem__, lambda left, right: merged(left, right, self.mode)
        )

    def _operands(
        self, patterns: tuple[Pattern, ...], as_written: bool
    ) -> list[Traffic] | NotCosted:
        found: list[Traffic] = []
        for pattern in patterns:
            each = self.of(pattern, unions_as_written=as_written)
            if isinstance(each, NotCosted):
                return each
            found.append(each)
        return found

    def _share(self, predicate: Expression, pattern: Pattern) -> float:
        """The share a condition lets pass; the printed model and bare rates know of none."""
        if self.mode == "paper" or not isinstance(self.rates, EventStatistics):
            return 1.0
        types = {each.variable: each.types for each in walk(pattern) if isinstance(each, Atom)}
        return selectivity(predicate, types, self.rates)


def _is_rate(given: object) -> bool:
    """What a caller gave may be anything."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return isfinite(given) and given >= 0
