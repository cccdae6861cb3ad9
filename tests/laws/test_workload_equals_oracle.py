"""Many queries together find what each finds alone, and what the definitions say."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts.found import Found as Delivered
from cepheid.kernels import shared_events
from tests.laws.engine_runs import Found, difference, disordered, oracle_answer
from tests.laws.event_streams import Row
from tests.laws.random_queries import Case, random_case, random_rows

OWN = (
    *tuple(random_case(seed).text for seed in (1, 4, 5, 9, 12, 17)),
    "EVENT SEQ(A x, !(B n), C y) WHERE [k] WITHIN 6",
    "EVENT SEQ(A x, !(B n)) WHERE [k] WITHIN 4",
    "EVENT SEQ(!(C n), A x, B y) WHERE [k] AND x.v < y.v WITHIN 7",
)
"""Queries that no engine shares; each has a kernel to compile, so they are few."""

SEEDS = range(20 * int(os.environ.get("CEPHEID_VOLUME", "1")))
STREAMS = 4


def random_workload(seed: int) -> dict[str, Case]:
    """Queries that share atoms, keys and windows more often than chance would have it."""
    r = random.Random(seed)
    options: dict[str, Any] = {} if r.random() < 0.8 else {"discrete": False}
    cases = {}
    for number in range(r.randint(3, 14)):
        kind = r.random()
        if kind < 0.25:
            text = r.choice(OWN)
        elif kind < 0.5:
            text = random_chain(r)
        else:
            names = "xyz"[: r.choice((1, 2, 2, 3, 3))]
            types = [r.choice(("A", "B", "C", "ANY(A, B)")) for _ in names]
            parts = ", ".join(f"{kind} {name}" for kind, name in zip(types, names, strict=True))
            tests = ["[k]"] if len(names) > 1 and r.random() < 0.7 else []
            tests += [
                r.choice((f"{name}.v = {r.randint(0, 2)}", f"{name}.s = 'q'", f"{name}.w > 0.5"))
                for name in names
                if r.random() < 0.5
            ]
            text = f"EVENT SEQ({parts})" if len(names) > 1 else f"EVENT {parts}"
            text += f" WHERE {' AND '.join(tests)}" if tests else ""
            text += f" WITHIN {r.choice((2, 5, 9, 9, 30))}" if r.random() < 0.9 else ""
        cases[f"q{number}"] = Case(seed, text, options)
    return cases


def random_chain(r: random.Random) -> str:
    """A chain of immediate successors, most often inside a window."""
    names = "xyz"[: r.choice((2, 2, 3))]
    parts = "; ".join(f"{r.choice('ABC')} {name}" for name in names)
    tests = []
    if r.random() < 0.8:
        pairs = pairwise(names)
        tests += [f"FILTER({one}.k = {other}.k)" for one, other in pairs]
    for name in names:
        test = f"{name}.v = {r.randint(0, 2)}"
        if r.random() < 0.6:
            tests.append(f"FILTER({test})" if r.random() < 0.5 else f"{name}.v < 3")
    if r.random() < 0.85:
        tests.append(f"({names[0]}, {names[-1]}) OCCURS WITHIN {r.choice((3, 6, 12))}")
    return f"SELECT * FROM {parts}" + (f" WHERE {', '.join(tests)}" if tests else "")


class Answers:
    """What a workload delivered, by query."""

    def __init__(self, cases: dict[str, Case], arrived: Sequence[Row]) -> None:
        self.cases = cases
        self.arrived = arrived
        self.found = {name: Found() for name in cases}

    def add(self, delivered: Delivered) -> None:
        for name, matches in delivered.items():
            assert set(matches.table().column("query").to_pylist()) == {name}
            self.found[name].add(self.cases[name], self.arrived, matches, True)

    def check(self, rows: Sequence[Row], what: str) -> None:
        for name, case in self.cases.items():
            expected = oracle_answer(case, rows)
            found = self.found[name]
            assert found == expected, f"{what}: {case.text}\n{difference(expected, found)}"


def texts_of(cases: dict[str, Case]) -> dict[str, str]:
    return {name: case.text for name, case in cases.items()}


def options_of(cases: dict[str, Case]) -> dict[str, Any]:
    return {**next(iter(cases.values())).options, "id": "event"}


@pytest.fixture(autouse=True)
def little_room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events fill the smallest places, and rings give way to lists at once, later or never."""
    seed = request.getfixturevalue("seed") if "seed" in request.fixturenames else 0
    monkeypatch.setattr(shared_events, "_MOST_RINGS", (1 << 12, 0, 40)[seed % 3])
    monkeypatch.setattr(shared_events, "_FIRST_POOL", 8 if seed % 2 else 1 << 13)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_workload_finds_what_each_query_means(seed: int) -> None:
    cases = random_workload(seed)
    options = options_of(cases)
    for stream in range(STREAMS):
        rows = random_rows(1000 * seed + stream, 20)
        r = random.Random(stream)
        as_table = r.random() < 0.4 and all(
            len(row) == 8 and None not in row.values() for row in rows
        )
        answers = Answers(cases, rows)
        workload = cepheid.Workload(texts_of(cases), **options)
        at = 0
        while at < len(rows):
            size = r.choice((1, 2, 4, 9))
            part = rows[at : at + size]
            answers.add(workload.feed(pa.Table.from_pylist(part) if as_table else part))
            at += size
            if r.random() < 0.25:
                workload = cepheid.Workload.restore(workload.snapshot(), **options)
        answers.add(workload.close())
        answers.check(rows, f"in cuts, stream {stream}, {'a table' if as_table else 'dicts'}")


@pytest.mark.parametrize("seed", SEEDS)
def test_order_of_arrival_within_the_lateness_does_not_matter(seed: int) -> None:
    cases = random_workload(seed)
    for stream in range(STREAMS):
        r = random.Random(stream)
        rows = random_rows(5000 * seed + stream, 16)
        lateness = r.choice((1, 3, 8))
        moved = disordered(rows, lateness, r)
        options = {**options_of(cases), "lateness": lateness}
        answers = Answers(cases, moved)
        workload = cepheid.Workload(texts_of(cases), **options)
        at = 0
        while at < len(moved):
            size = r.choice((1, 2, 3, 6))
            answers.add(workload.feed(moved[at : at + size]))
            at += size
            if r.random() < 0.15:
                workload = cepheid.Workload.restore(workload.snapshot(), **options)
        assert workload.late.count == 0
        answers.add(workload.close())
        answers.check(rows, f"in disorder, stream {stream}")


@pytest.mark.parametrize("seed", SEEDS)
def test_queries_come_and_go_and_the_others_do_not_notice(seed: int) -> None:
    cases = random_workload(seed)
    r = random.Random(seed)
    rows = random_rows(9000 + seed, 24)
    names = list(cases)
    later = set(r.sample(names, len(names) // 2))
    workload = cepheid.Workload(
        {name: case.text for name, case in cases.items() if name not in later}, **options_of(cases)
    )
    since = dict.fromkeys(names, -(10**9))
    until = dict.fromkeys(names, 10**9)
    answers = Answers(cases, rows)
    for at in range(0, len(rows), 3):
        answers.add(workload.feed(rows[at : at + 3]))
        now = rows[min(at + 2, len(rows) - 1)]["ts"]
        if later and r.random() < 0.6:
            name = later.pop()
            workload.add(cases[name].text, name=name)
            since[name] = now + 1
        if r.random() < 0.25:
            name = r.choice(names)
            if name in workload.names and until[name] == 10**9:
                if r.random() < 0.5:
                    workload.remove(name)
                else:
                    workload.pause(name)
                until[name] = now + 1
    answers.add(workload.close())
    for name, case in cases.items():
        if name in later:
            assert not answers.found[name]
            continue
        seen = [row for row in rows if since[name] <= row["ts"] < until[name]]
        expected = oracle_answer(case, seen)
        # What becomes final after its end is not delivered any more.
        expected = type(expected)({m: n for m, n in expected.items() if m[2] < until[name]})
        assert answers.found[name] == expected, (
            f"{case.text} active from {since[name]} to {until[name]}\n"
            f"{difference(expected, answers.found[name])}"
        )


def test_paused_and_resumed() -> None:
    text = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 100"
    workload = cepheid.Workload({"one": text, "two": text}, id="event")
    events = [{"event": n, "type": "AB"[n % 2], "ts": n, "k": 1} for n in range(12)]
    found: dict[str, list[Any]] = {"one": [], "two": []}

    def feed(part: Sequence[dict[str, Any]]) -> None:
        for name, matches in workload.feed(part).items():
            found[name] += [tuple(ids) for ids in matches.ids.tolist()]

    feed(events[:4])
    workload.pause("one")
    feed(events[4:8])
    workload.resume("one")
    feed(events[8:])
    in_order = [(a, b) for b in range(1, 12, 2) for a in range(0, b, 2)]
    assert sorted(found["two"]) == sorted(in_order)
    assert sorted(found["one"]) == sorted((a, b) for a, b in in_order if b < 4 or a >= 8)


def test_match_ids_are_those_of_the_query_alone() -> None:
    case = replace(random_workload(3)["q0"], text="EVENT SEQ(A x, B y) WHERE [k] WITHIN 9")
    rows = [row for seed in range(5) for row in random_rows(seed, 20) if "k" in row]
    rows = [{**row, "event": n, "ts": n} for n, row in enumerate(rows)]
    workload = cepheid.Workload([case.text, "EVENT SEQ(A x, C y) WHERE [k] WITHIN 9"], id="event")
    together = workload.feed(rows)["query"].table().column("match_id").to_pylist()
    alone = cepheid.detect(rows, case.text, id="event").column("match_id").to_pylist()
    assert sorted(together) == sorted(alone)
    assert together
