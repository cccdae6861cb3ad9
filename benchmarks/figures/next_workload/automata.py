"""One automaton per operator, as the paper's system runs a query; what each does is counted.

Every operator is a kernel call of its own over the events that its operands send, put in the order
that SPEC A1.1 asks of channels: by stamps from the last one back. Two counts are taken:

* `indexed`: events received and instances touched by the product's kernel, which keeps instances
  in order and touches those an event completes only;
* `scanned`: what an automaton does whose instances read every event of the second operand until
  one follows. Table 1 of the paper is a model of that.

The paper's node had its sources and sinks on other machines: what comes from them and goes to them
is counted by query, and `node` is `scanned` with a step for each of these events, which is what the
paper's cost of a deployment plan (section 4.2) charges for an event that crosses between nodes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from benchmarks.figures.next_workload.queries import RATES
from cepheid.algebra.pattern import Atom, Next, Pattern, operands
from cepheid.kernels.match_nodes import END, FACTS, MASK, START
from cepheid.kernels.succession import Constants, Events, Succession
from cepheid.kernels.succession_shape import ALWAYS, Follow, Leaf, Merge, SuccessionShape

SECOND = 1_000_000
BINS_PER_SECOND = 50
Metric: TypeAlias = Literal["indexed", "scanned", "node"]

_NO_STAMP = np.iinfo(np.int64).max
_SPREAD = 1 << 10
"""Room between two ticks to tell apart events of equal start and end but other stamps between."""

_FOLLOW = SuccessionShape(
    (Leaf(0, 0), Leaf(1, 1), Follow(0, 1, ALWAYS, ALWAYS, ALWAYS, ALWAYS, (), False)), (2,)
)
_MERGE = SuccessionShape((Leaf(0, 0), Leaf(1, 1), Merge((0, 1), ((), ()))), (2,))
_END_OF_TIME = 2**62
_NO_CONSTANTS = Constants(np.zeros(0, np.int64), np.zeros(0), 0)


@dataclass(frozen=True, slots=True)
class Stream:
    """Events in stable order: a row of stamps each, the last one first, padded at the end."""

    stamps: np.ndarray
    starts: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        """The last stamps."""
        ends: np.ndarray = self.stamps[:, 0]
        return ends

    def __len__(self) -> int:
        """The number of events."""
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Work:
    """What one operator did: in all, and in each bin of time."""

    is_next: bool
    received: int
    touched: int
    scanned: int
    sent: int
    cpu_seconds: float
    indexed_by_time: np.ndarray
    scanned_by_time: np.ndarray

    @property
    def indexed(self) -> int:
        """Events received and instances touched."""
        return self.received + self.touched

    def steps(self, metric: Metric) -> int:
        """Steps in all."""
        return self.indexed if metric == "indexed" else self.scanned

    def by_time(self, metric: Metric) -> np.ndarray:
        """Steps in each bin of time."""
        return self.indexed_by_time if metric == "indexed" else self.scanned_by_time


@dataclass(frozen=True, slots=True)
class QueryRun:
    """A query's operators, operands first, what comes out of it, and what crosses the network."""

    works: tuple[Work, ...]
    matches: int
    crossing_by_time: np.ndarray

    def steps(self, metric: Metric) -> float:
        """Steps in all."""
        crossing = float(self.crossing_by_time.sum()) if metric == "node" else 0.0
        return crossing + sum(work.steps(metric) for work in self.works)

    def by_time(self, metric: Metric) -> np.ndarray:
        """Steps in each bin of time."""
        start = self.crossing_by_time if metric == "node" else np.zeros(1)
        return sum((work.by_time(metric) for work in self.works), start=start)


def poisson_sources(seconds: int, seed: int) -> dict[str, Stream]:
    """The paper's eight sources."""
    numbers = np.random.default_rng(seed)
    found = {}
    for name, rate in RATES.items():
        events = numbers.poisson(rate * seconds)
        times = np.sort(numbers.integers(0, seconds * SECOND, events))
        found[name] = Stream(times[:, None], times)
    return found


def run_query(query: Pattern, sources: Mapping[str, Stream], seconds: int) -> QueryRun:
    """Run all operators of a query bottom up."""
    works: list[Work] = []
    crossing = [np.zeros(seconds * BINS_PER_SECOND, np.float32)]

    def output(node: Pattern) -> Stream:
        if isinstance(node, Atom):
            source = sources[node.types[0]]
            crossing.append(binned(source.ends, seconds))
            return source
        first, second = (output(each) for each in operands(node))
        work, sent = run_operator(isinstance(node, Next), first, second, seconds)
        works.append(work)
        return sent

    sent = output(query)
    crossing.append(binned(sent.ends, seconds))
    return QueryRun(tuple(works), len(sent), sum(crossing))


def run_operator(is_next: bool, first: Stream, second: Stream, seconds: int) -> tuple[Work, Stream]:
    """One operator over two streams; timed is the kernel alone."""
    facts, order = _facts(first, second)
    succession = Succession(_FOLLOW if is_next else _MERGE)
    found: list[np.ndarray] = []

    def deliver(ends: np.ndarray, rows: np.ndarray, roots: np.ndarray, delays: np.ndarray) -> None:
        del ends, roots, delays
        found.append(rows[:, 1])

    events = Events(0, facts, np.zeros((0, facts.shape[1])))
    began = time.process_time()
    succession.run(events, order, _END_OF_TIME, _NO_CONSTANTS, deliver)
    cpu_seconds = time.process_time() - began
    rows = np.concatenate(found) if found else np.zeros(0, np.int64)
    received = len(first) + len(second)
    arrivals = binned(first.ends, seconds) + binned(second.ends, seconds)
    if not is_next:
        sent = _merged(first, second)
        if len(rows) != len(sent):
            msg = f"a union of {received} events sent {len(rows)}"
            raise AssertionError(msg)
        work = Work(False, received, 0, received, len(sent), cpu_seconds, arrivals, arrivals)
        return work, sent
    bound, coming = rows[0::2], rows[1::2] - len(first)
    reads = scanned_reads(first, second, bound, coming)
    touched = int(succession.counters[0])
    scanned = len(first) + int(reads.sum())
    work = Work(
        True,
        received,
        touched,
        scanned,
        len(bound),
        cpu_seconds,
        arrivals + binned(second.ends[coming], seconds),
        binned(first.ends, seconds) + binned(second.ends, seconds, reads),
    )
    return work, _followed(first, second, bound, coming)


def scanned_reads(
    first: Stream, second: Stream, bound: np.ndarray, coming: np.ndarray
) -> np.ndarray:
    """For each event of `second`, how many waiting instances read it; at least the automaton does.

    An instance waits from the event that spawned it, reads what arrives after that, and is gone
    with its successor.
    """
    begin = np.searchsorted(second.ends, first.ends, side="right")
    last = np.full(len(first), len(second) - 1, np.int64)  # those without a successor read all
    last[bound] = coming
    np.maximum.at(last, bound, coming)
    changes = np.zeros(len(second) + 1, np.int64)
    np.add.at(changes, begin, 1)
    np.add.at(changes, np.maximum(last + 1, begin), -1)
    reads: np.ndarray = np.maximum(np.cumsum(changes)[:-1], 1)
    return reads


def binned(times: np.ndarray, seconds: int, weights: np.ndarray | None = None) -> np.ndarray:
    """How much happens in each bin of time."""
    bins = times * BINS_PER_SECOND // SECOND
    found: np.ndarray = np.bincount(bins, weights, seconds * BINS_PER_SECOND).astype(np.float32)
    return found


def _facts(first: Stream, second: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Both streams as the kernel's events: those of `first` are numbered first.

    An event of several stamps is an interval to the kernel; stamps between its ends, which decide
    the order of two events with equal ends, are kept as a place between two ticks.
    """
    facts = np.empty((FACTS, len(first) + len(second)), np.int64)
    facts[MASK, : len(first)], facts[MASK, len(first) :] = 1, 2
    facts[START] = np.concatenate([_spread_starts(first), _spread_starts(second)])
    facts[END] = np.concatenate([first.ends, second.ends]) * _SPREAD + (_SPREAD - 1)
    return facts, np.argsort(facts[END], kind="stable")


def _spread_starts(stream: Stream) -> np.ndarray:
    spread: np.ndarray = stream.starts * _SPREAD
    if stream.stamps.shape[1] <= 2 or len(stream) < 2:
        return spread
    order = np.lexsort((*stream.stamps.T[::-1], stream.starts, stream.ends))
    stamps, starts = stream.stamps[order], stream.starts[order]
    is_like = (starts[1:] == starts[:-1]) & (stamps[1:, 0] == stamps[:-1, 0])
    is_new = is_like & (stamps[1:] != stamps[:-1]).any(axis=1)
    if not is_new.any():
        return spread
    number = np.concatenate([[0], np.cumsum(is_new)])
    group = np.concatenate([[0], np.where(is_like, 0, number[1:])])
    place = number - np.maximum.accumulate(group)
    if place.max() >= _SPREAD:
        msg = "too many events of one start and end to be told apart"
        raise AssertionError(msg)
    spread[order] += place
    return spread


def _merged(first: Stream, second: Stream) -> Stream:
    width = max(first.stamps.shape[1], second.stamps.shape[1])
    stamps = np.full((len(first) + len(second), width), _NO_STAMP)
    stamps[: len(first), : first.stamps.shape[1]] = first.stamps
    stamps[len(first) :, : second.stamps.shape[1]] = second.stamps
    return _in_order(stamps, np.concatenate([first.starts, second.starts]))


def _followed(first: Stream, second: Stream, bound: np.ndarray, coming: np.ndarray) -> Stream:
    width = first.stamps.shape[1]
    stamps = np.full((len(bound), width + second.stamps.shape[1]), _NO_STAMP)
    stamps[:, : second.stamps.shape[1]] = second.stamps[coming]
    lengths = (second.stamps[coming] != _NO_STAMP).sum(axis=1)
    for length in np.unique(lengths):
        chosen = lengths == length
        stamps[chosen, length : length + width] = first.stamps[bound[chosen]]
    return _in_order(stamps, first.starts[bound])


def _in_order(stamps: np.ndarray, starts: np.ndarray) -> Stream:
    """Compared from the last stamp back; a missing one is later than any: the longer is smaller."""
    order = np.lexsort(stamps.T[::-1])
    return Stream(stamps[order], starts[order])
