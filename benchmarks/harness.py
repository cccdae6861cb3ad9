"""Timing with warm-ups and interleaved repeats, answers checked before any time is kept."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.process_tree import process_cpu_seconds, tree_cpu_seconds

Answer = int | None  # number of matches; None for a limit that looks for none


class WrongAnswerError(AssertionError):
    """Two ways to answer one query found different numbers of matches: no time is kept."""


class Clock(StrEnum):
    """Which of the measured times a ratio is taken of."""

    WALL = "wall"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Runs:
    """All timed runs of one contender, in the order they were taken."""

    name: str
    events: int
    matches: Answer
    warmups: int
    wall_seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]

    def seconds(self, clock: Clock) -> tuple[float, ...]:
        """Return the raw times on one clock."""
        match clock:
            case Clock.WALL:
                return self.wall_seconds
            case Clock.CPU:
                return self.cpu_seconds

    def median(self, clock: Clock = Clock.WALL) -> float:
        """Return the median run in seconds."""
        return statistics.median(self.seconds(clock))

    def spread(self, clock: Clock = Clock.WALL) -> tuple[float, float]:
        """Return the fastest and the slowest run in seconds."""
        return min(self.seconds(clock)), max(self.seconds(clock))

    def events_per_second(self, clock: Clock = Clock.WALL) -> float:
        """Return the speed of the median run."""
        return self.events / self.median(clock)


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the work: `prepare` runs untimed before each run and returns what is timed.

    What it returns says how many matches it found, or None when it looks for none.
    """

    name: str
    events: int
    prepare: Callable[[], Callable[[], Answer]]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A speed relative to another one: of the medians, and the extremes over the rounds."""

    value: float
    lowest: float
    highest: float


def measure(
    name: str,
    function: Callable[[], Answer],
    repeats: int,
    warmups: int,
    *,
    events: int = 0,
    tree: bool = False,
) -> Runs:
    """Time one function; `tree` counts the CPU of child processes too.

    >>> measure("nothing", lambda: 7, repeats=3, warmups=1).matches
    7
    """
    contender = Contender(name, events, lambda: function)
    return interleave([contender], repeats, warmups, tree=tree)[name]


def interleave(
    contenders: Sequence[Contender],
    repeats: int,
    warmups: int,
    *,
    expected: Answer = None,
    tree: bool = False,
) -> dict[str, Runs]:
    """Time the contenders in turns, A B A B, so that a slow spell of the machine hits them all.

    Raises WrongAnswerError when a run's number of matches differs from `expected`, from another
    run of the same contender or from another contender over the same number of events.
    """
    cpu_seconds = tree_cpu_seconds if tree else process_cpu_seconds
    answers: dict[str, list[Answer]] = {each.name: [] for each in contenders}
    wall: dict[str, list[float]] = {each.name: [] for each in contenders}
    cpu: dict[str, list[float]] = {each.name: [] for each in contenders}
    for turn in range(warmups + repeats):
        for each in contenders:
            work = each.prepare()
            gc.collect()
            cpu_start, wall_start = cpu_seconds(), time.perf_counter()
            answer = work()
            wall_end, cpu_end = time.perf_counter(), cpu_seconds()
            answers[each.name].append(answer)
            if turn >= warmups:
                wall[each.name].append(wall_end - wall_start)
                cpu[each.name].append(cpu_end - cpu_start)
    found = check(contenders, answers, expected)
    return {
        each.name: Runs(
            name=each.name,
            events=each.events,
            matches=found[each.name],
            warmups=warmups,
            wall_seconds=tuple(wall[each.name]),
            cpu_seconds=tuple(cpu[each.name]),
        )
        for each in contenders
    }


def check(
    contenders: Sequence[Contender],
    answers: dict[str, list[Answer]],
    expected: Answer = None,
) -> dict[str, Answer]:
    """Return each contender's number of matches; raise WrongAnswerError when any two disagree."""
    by_events: dict[int, tuple[str, int]] = {}
    found: dict[str, Answer] = {}
    for each in contenders:
        first = answers[each.name][0]
        if any(answer != first for answer in answers[each.name]):
            msg = f"{each.name} found {answers[each.name]} matches in its runs over the same events"
            raise WrongAnswerError(msg)
        found[each.name] = first
        if first is None:
            continue
        if expected is not None and first != expected:
            msg = f"{each.name} found {first} matches, {expected} expected"
            raise WrongAnswerError(msg)
        other, count = by_events.setdefault(each.events, (each.name, first))
        if count != first:
            msg = f"{each.name} found {first} matches, {other} {count} in the same events"
            raise WrongAnswerError(msg)
    return found


def speed_ratio(fast: Runs, slow: Runs, clock: Clock) -> Ratio:
    """Return the events per second of `fast` relative to `slow`; each round is a sample."""
    rounds = [
        (fast.events / mine) / (slow.events / theirs)
        for mine, theirs in zip(fast.seconds(clock), slow.seconds(clock), strict=True)
    ]
    value = fast.events_per_second(clock) / slow.events_per_second(clock)
    return Ratio(value, min(rounds), max(rounds))


def time_ratio(runs: Runs, reference: Runs, clock: Clock) -> Ratio:
    """Return the time of a run relative to the reference's, whatever the number of events."""
    rounds = [
        mine / theirs
        for mine, theirs in zip(runs.seconds(clock), reference.seconds(clock), strict=True)
    ]
    return Ratio(runs.median(clock) / reference.median(clock), min(rounds), max(rounds))
