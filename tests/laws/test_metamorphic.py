"""What must hold between answers, whatever they are: no oracle, so streams may be longer.

Each relation states its precondition by the queries it is tried on. Matches are told by the numbers
of their events.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest

import cepheid
from cepheid.optimizer.optimizer import RULES
from tests.laws.engine_runs import whole
from tests.laws.event_streams import CLOCKS, TICKS, Row, in_form, random_stream
from tests.laws.random_queries import Case

POSITIVE = (
    "EVENT SEQ(A x, B y) WHERE [k] WITHIN 12",
    "EVENT SEQ(A x, B y, C z) WHERE [k] AND x.v <= z.v WITHIN 20",
    "EVENT SEQ(A x, A y, B z) WHERE x.v < y.v WITHIN 9",
    "EVENT SEQ(ANY(A, B) x, C y) WHERE [s] AND (x.b = true OR y.w > 0.5) WITHIN 15",
    "EVENT A x WHERE x.v > 1",
)
NEGATED = (
    "EVENT SEQ(A x, !(B n), C y) WHERE [k] AND n.v > x.v WITHIN 20",
    "EVENT SEQ(!(B n), A x, C y) WHERE [s] WITHIN 9",
    "EVENT SEQ(A x, C y, !(B n)) WHERE [k] WITHIN 10",
    "EVENT SEQ(!(A m), B x, !(C n), A y, !(B o)) WITHIN 7",
)
QUERIES = POSITIVE + NEGATED
TYPES = ("A", "B", "C")

pytestmark = pytest.mark.slow  # each query is a kernel of its own

STREAMS = range(12)

Answer = Counter[tuple[int, ...]]


def stream(seed: int, size: int = 60) -> list[Row]:
    return random_stream(random.Random(seed), TYPES, size, careless=seed % 4 == 3)


def found(
    text: str, rows: Sequence[Row], cuts: Iterable[int] = (), restart: bool = False, **options: Any
) -> Answer:
    """The matches of a stream fed in pieces; `restart` from a snapshot at each cut."""
    options = {"id": "event", **options}
    detector = cepheid.Detector(text, **options)
    answer: Answer = Counter()
    edges = [0, *sorted(cuts), len(rows)]
    for low, high in pairwise(edges):
        answer.update(told(detector.feed(in_form(rows[low:high], "plain", TICKS))))
        if restart:
            detector = cepheid.Detector.restore(text, detector.snapshot(), **options)
    answer.update(told(detector.close()))
    assert detector.late.count == detector.quarantined.count == 0
    return answer


def told(matches: cepheid.Matches) -> list[tuple[int, ...]]:
    return [tuple(ids) for ids in matches.ids.tolist()] if len(matches) else []


def each(queries: Sequence[str]) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("text", queries)


@each(QUERIES)
def test_some_streams_have_matches(text: str) -> None:
    assert sum(found(text, stream(seed)).total() for seed in STREAMS) > 20


@each((POSITIVE[0], NEGATED[0], NEGATED[3]))
def test_every_cut_gives_the_same(text: str) -> None:
    rows = stream(2, 8)[:8]
    whole = found(text, rows)
    for chosen in range(1 << (len(rows) - 1)):
        cuts = [i + 1 for i in range(len(rows) - 1) if chosen >> i & 1]
        assert found(text, rows, cuts) == whole, cuts


@each(QUERIES)
def test_restarts_change_nothing(text: str) -> None:
    for seed in STREAMS:
        rows = stream(seed, 30)
        assert found(text, rows, range(1, len(rows)), restart=True) == found(text, rows)


@each(QUERIES)
def test_arrival_order_within_the_lateness_changes_nothing(text: str) -> None:
    for seed in STREAMS:
        rows = stream(seed)
        r = random.Random(seed)
        moved = sorted(rows, key=lambda row: row["ts"] + r.uniform(0, 4.999))
        cuts = sorted(r.sample(range(1, len(rows)), 5))
        assert found(text, moved, cuts, lateness=5) == found(text, rows)


@each(QUERIES)
def test_events_of_other_types_change_nothing(text: str) -> None:
    for seed in STREAMS:
        rows = stream(seed)
        r = random.Random(seed)
        more = [{**r.choice(rows), "type": "Other", "event": 1_000 + i} for i in range(40)]
        merged = sorted(rows + more, key=lambda row: row["ts"])
        assert found(text, merged) == found(text, rows)


@each(QUERIES)
@pytest.mark.parametrize("shift", [-(10**15), -7, 1, 10**15])
def test_time_has_no_origin(text: str, shift: int) -> None:
    for seed in STREAMS[:4]:
        rows = stream(seed)
        shifted = [{**row, "ts": row["ts"] + shift} for row in rows]
        assert found(text, shifted) == found(text, rows)


@each(POSITIVE)
def test_time_has_no_scale(text: str) -> None:
    """Not with negations at an end: a match waiting for its deadline ends one tick before it."""
    head, _, window = text.partition(" WITHIN ")
    scaled = f"{head} WITHIN {int(window) * 1000}" if window else head
    for seed in STREAMS:
        rows = stream(seed)
        slow = [{**row, "ts": row["ts"] * 1000} for row in rows]
        assert found(scaled, slow) == found(text, rows)


@each([q for q in QUERIES if "[k]" in q])
@pytest.mark.parametrize(
    "renamed", [lambda k: -k - 5, lambda k: k * 2**40, lambda k: f"key {k}"], ids="abc"
)
def test_only_the_equality_of_keys_counts(text: str, renamed: Callable[[int], Any]) -> None:
    for seed in STREAMS[:3]:  # none with gaps, which dicts and tables tell differently
        rows = stream(seed)
        other = [{**row, "k": renamed(row["k"])} for row in rows]
        detector = cepheid.Detector(text, id="event")
        answer = Counter(told(detector.feed(other)) + told(detector.close()))
        assert answer == found(text, rows)


def test_names_do_not_matter() -> None:
    one = "EVENT SEQ(A x, !(B n), C y) WHERE [k] AND x.v < y.v AND n.v > x.v WITHIN 12"
    other = (
        "event seq(A first, !(B no), C last) where [k] and first.v < last.v and no.v > first.v "
        "within 12"
    )
    for seed in STREAMS:
        assert found(one, stream(seed)) == found(other, stream(seed))


@each([q for q in POSITIVE if "WITHIN" in q])
def test_a_shorter_window_keeps_the_shorter_matches(text: str) -> None:
    head, _, window = text.partition(" WITHIN ")
    for seed in STREAMS:
        rows = stream(seed)
        wide = found(text, rows)
        for short in (1, 2, int(window) // 2, int(window) - 1):
            expected = Counter(
                {m: n for m, n in wide.items() if rows[m[-1]]["ts"] - rows[m[0]]["ts"] < short}
            )
            assert found(f"{head} WITHIN {short}", rows) == expected


STRONGER = ("x.v > 0", "x.s != 'p'", "x.w + x.v < 3")


@pytest.mark.parametrize(
    ("text", "more"),
    [(q, STRONGER[i % 3]) for i, q in enumerate(q for q in QUERIES if "WHERE" in q)],
)
def test_a_stronger_test_finds_fewer_and_a_stronger_negation_more(text: str, more: str) -> None:
    stronger = text.replace("WHERE ", f"WHERE {more} AND ")
    for seed in STREAMS:
        rows = stream(seed)
        assert found(stronger, rows) <= found(text, rows)
        if "n)" in text:
            weaker_guard = text.replace("WHERE ", f"WHERE {more.replace('x.', 'n.')} AND ")
            assert found(weaker_guard, rows) >= found(text, rows)


@each(QUERIES)
def test_the_optimiser_changes_nothing(text: str) -> None:
    off = {"rules_off": [rule.__name__ for rule in RULES]}
    for seed in STREAMS:
        assert found(text, stream(seed), plan=off) == found(text, stream(seed))


@each(QUERIES)
def test_sources_may_be_merged_in_any_order(text: str) -> None:
    for seed in STREAMS:
        rows = stream(seed)
        r = random.Random(seed)
        source = {row["event"]: r.randrange(3) for row in rows}
        for order in ((0, 1, 2), (2, 0, 1)):
            merged = sorted(rows, key=lambda row: (row["ts"], order[source[row["event"]]]))
            assert found(text, merged) == found(text, rows)


@each([q for q in QUERIES if "[k]" in q])
def test_each_key_alone_gives_the_same(text: str) -> None:
    for seed in STREAMS:
        rows = [row for row in stream(seed) if row.get("k") is not None]
        answer: Answer = Counter()
        for key in {row["k"] for row in rows}:
            answer += found(text, [row for row in rows if row["k"] == key])
        assert answer == found(text, rows)


@each(QUERIES)
def test_what_was_found_stays_found(text: str) -> None:
    """Matches of a prefix that left before it ended are matches of the whole."""
    for seed in STREAMS:
        rows = stream(seed)
        whole = found(text, rows)
        for end in range(0, len(rows), 7):
            assert found(text, rows[:end], close_at_end=False) <= whole


@pytest.mark.parametrize("test", ["", " AND n.v > x.v", " AND n.s = y.s"])
def test_a_negation_splits_the_sequences_in_two(test: str) -> None:
    for seed in STREAMS:
        # Without gaps: a test of an absent attribute holds, which equality does not pass on.
        rows = stream(seed * 4)
        without = found(f"EVENT SEQ(A x, !(B n), C y) WHERE [k]{test} WITHIN 15", rows)
        between = found(f"EVENT SEQ(A x, B n, C y) WHERE [k]{test} WITHIN 15", rows)
        every = found("EVENT SEQ(A x, C y) WHERE [k] WITHIN 15", rows)
        some = {(x, y) for x, _, y in between}
        assert some.isdisjoint(without)
        assert some | set(without) == set(every)


@each(POSITIVE)
def test_a_deleted_event_takes_its_matches_along(text: str) -> None:
    for seed in STREAMS[:4]:
        rows = stream(seed)
        whole = found(text, rows)
        for gone in range(0, len(rows), 5):
            rest = [row for row in rows if row["event"] != gone]
            assert found(text, rest) == Counter({m: n for m, n in whole.items() if gone not in m})


@pytest.mark.parametrize(
    ("text", "backwards"),
    [
        ("SEQ(A x, B y, C z) WHERE [k]", "SEQ(C z, B y, A x) WHERE [k]"),
        ("SEQ(A x, !(B n), C y) WHERE [k]", "SEQ(C y, !(B n), A x) WHERE [k]"),
        ("SEQ(A x, A y) WHERE x.v < y.v", "SEQ(A y, A x) WHERE x.v < y.v"),
        ("SEQ(A x, B y) WHERE [s] AND x.w + y.w > 1", "SEQ(B y, A x) WHERE [s] AND x.w + y.w > 1"),
    ],
)
def test_time_may_run_backwards(text: str, backwards: str) -> None:
    for seed in STREAMS:
        rows = stream(seed)
        reversed_rows = [{**row, "ts": -row["ts"]} for row in reversed(rows)]
        there = found(f"EVENT {text} WITHIN 11", rows)
        back = found(f"EVENT {backwards} WITHIN 11", reversed_rows)
        assert Counter({tuple(reversed(m)): n for m, n in back.items()}) == there


@each(QUERIES)
def test_events_at_the_watermark_are_counted_once(text: str) -> None:
    """Just before it an event is late, at it and after it not; nothing is lost or used twice."""
    for seed in STREAMS:
        rows = stream(seed)
        r = random.Random(seed)
        detector = cepheid.Detector(text, id="event", lateness=3)
        used, late, answer = [], [], Counter[tuple[int, ...]]()
        latest = -(10**9)
        for row in rows:
            moved = {**row, "ts": max(0, row["ts"] - r.choice((0, 0, 2, 3, 4, 5)))}
            answer.update(told(detector.feed(in_form([moved], "plain", TICKS))))
            (late if moved["ts"] < latest - 3 else used).append(moved)
            latest = max(latest, moved["ts"])
        answer.update(told(detector.close()))
        assert detector.late.count == len(late)
        in_order = sorted(used, key=lambda row: row["ts"])
        assert answer == found(text, in_order)


def test_clocks_count_alike() -> None:
    """Ticks and time stamps of every unit tell the same story."""
    for text in QUERIES:
        head, _, window = text.partition(" WITHIN ")
        for clock in CLOCKS:
            unit = f" {clock.window_unit}" if clock.window_unit else ""
            timed = f"{head} WITHIN {window}{unit}" if window else head
            options = {} if clock.tick is None else {"tick": clock.tick}
            for seed in STREAMS[:3]:
                rows = stream(seed)
                case = Case(seed, timed, options, clock)
                answer = whole(cepheid.compile(timed), case, rows, form="plain")
                assert {ids for ids, *_ in answer} == set(found(text, rows)), (timed, clock)
