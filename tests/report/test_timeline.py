"""What a timeline shows of a match table, and the two pictures drawn of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cepheid.model.errors import DataError, OptionError
from cepheid.report import Absence, TimelineOptions, draw_png, write_html
from cepheid.report.timeline import build_timeline

OPENING = datetime(2006, 6, 27, 8, tzinfo=UTC)
THEFTS = TimelineOptions(
    title="Shoplifting",
    name="id",
    description=("product",),
    detail=("reader",),
    window=timedelta(hours=12),
    absences=(Absence("COUNTER-READING", "x", "z"),),
)


def reading(kind: str, minute: int, tag: str, reader: str, product: str = "wool jumper") -> dict:
    time = OPENING + timedelta(minutes=minute)
    return {"type": kind, "ts": time, "id": tag, "reader": reader, "product": product}


def theft(tag: str, begin: int, end: int, **more: str) -> dict:
    x = reading("SHELF-READING", begin, tag, "shelf-007", **more)
    z = reading("EXIT-READING", end, tag, "exit-2", **more)
    return {"match_id": tag, "query": "q", "start": x["ts"], "end": z["ts"], "x": x, "z": z}


def thefts() -> pa.Table:
    return pa.Table.from_pylist(
        [theft("tag-1", 5, 25), theft("tag-1", 15, 25), theft("tag-2", 200, 215)]
    )


def test_lanes_hold_marks_names_and_absences():
    timeline = build_timeline(thefts(), THEFTS)
    lane = timeline.lanes[0]
    assert (lane.name, lane.description) == ("tag-1", "wool jumper")
    assert [(mark.variable, mark.detail) for mark in lane.marks] == [
        ("x", "shelf-007"),
        ("z", "exit-2"),
    ]
    assert [(gap.label, gap.begin, gap.end) for gap in lane.gaps] == [
        ("no COUNTER-READING", lane.start, lane.end)
    ]
    assert lane.window_end == lane.start + 12 * 3600 * 1_000_000
    assert timeline.variables == {"x": "SHELF-READING", "z": "EXIT-READING"}
    assert timeline.subtitle.startswith("3 matches · 27 June 2006 · UTC")


def test_far_apart_matches_get_an_axis_of_their_own_each():
    assert build_timeline(thefts(), THEFTS).elapsed
    assert not build_timeline(thefts().slice(0, 2), THEFTS).elapsed
    assert not build_timeline(thefts(), TimelineOptions(axis="clock")).elapsed


def test_limit_and_one_per_name():
    assert len(build_timeline(thefts(), TimelineOptions(limit=1)).lanes) == 1
    assert "1 of 3 matches" in build_timeline(thefts(), TimelineOptions(limit=1)).subtitle
    lanes = build_timeline(thefts(), TimelineOptions(name="id", one_per_name=True)).lanes
    assert [lane.name for lane in lanes] == ["tag-1", "tag-2"]
    assert lanes[0].end - lanes[0].start == 10 * 60 * 1_000_000
    with pytest.raises(OptionError, match="one_per_name"):
        build_timeline(thefts(), TimelineOptions(one_per_name=True))


@pytest.mark.parametrize("encode", [False, True])
def test_context_shows_other_events_of_the_same_name_in_the_window(encode):
    events = pa.Table.from_pylist(
        [
            reading("SHELF-READING", 1, "tag-1", "shelf-007"),  # before the match
            reading("SHELF-READING", 5, "tag-1", "shelf-007"),  # the match's own x
            reading("SHELF-READING", 15, "tag-1", "shelf-007"),
            reading("COUNTER-READING", 16, "tag-2", "counter-1"),  # another item
            reading("SHELF-READING", 100, "tag-1", "shelf-007"),
            reading("EXIT-READING", 900, "tag-1", "exit-1"),  # after the window
        ]
    )
    if encode:
        events = events.set_column(2, "id", events["id"].dictionary_encode())
    lane = build_timeline(thefts(), THEFTS, events).lanes[0]
    minutes = [(mark.time - lane.start) // 60_000_000 + 5 for mark in lane.context]
    assert minutes == [15, 100]


def test_iterated_variables_and_integer_time():
    row = {
        "match_id": "m",
        "query": "q",
        "start": 1,
        "end": 9,
        "a": {"ts": 1, "price": 2.5},
        "b": [{"ts": 3, "price": 4.0}, {"ts": 5, "price": 5.0}, {"ts": 9, "price": 6.0}],
    }
    options = TimelineOptions(window=20, absences=[Absence("S", "b", None), Absence("T", "a", "b")])
    timeline = build_timeline(pa.Table.from_pylist([row]), options)
    lane = timeline.lanes[0]
    assert lane.name == "match 1"
    assert [(mark.variable, mark.time) for mark in lane.marks] == [
        ("a", 1),
        ("b", 3),
        ("b", 5),
        ("b", 9),
    ]
    assert [(gap.begin, gap.end) for gap in lane.gaps] == [(9, 21), (1, 3)]
    assert timeline.subtitle == "1 match"


def test_negated_start_reaches_back_one_window_from_the_last_event():
    options = TimelineOptions(window=10, absences=[Absence("S", None, "a")])
    row = {"start": 20, "end": 24, "a": {"ts": 20}, "b": {"ts": 24}}
    (gap,) = build_timeline(pa.Table.from_pylist([row]), options).lanes[0].gaps
    assert (gap.begin, gap.end) == (14, 20)


def test_a_variable_without_event_has_no_mark():
    schema = pa.schema(
        [("start", pa.int64()), ("end", pa.int64())]
        + [(name, pa.struct([("ts", pa.int64())])) for name in ("a", "b")]
    )
    row = {"start": 1, "end": 1, "a": {"ts": 1}, "b": None}
    lane = build_timeline(pa.Table.from_pylist([row], schema)).lanes[0]
    assert [mark.variable for mark in lane.marks] == ["a"]


def test_tables_that_are_no_matches_are_refused():
    with pytest.raises(DataError, match="`start`"):
        build_timeline(pa.table({"ts": [1], "type": ["A"]}))
    with pytest.raises(DataError, match="no column with the events"):
        build_timeline(pa.table({"start": [1], "end": [2], "total": [3]}))
    with pytest.raises(DataError, match="`when`"):
        build_timeline(thefts(), TimelineOptions(time="when"))
    with pytest.raises(OptionError, match="limit"):
        TimelineOptions(limit=0)
    with pytest.raises(OptionError, match="window"):
        build_timeline(thefts(), TimelineOptions(absences=[Absence("C", "z", None)]))


def png_size(path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_png_grows_with_its_lanes(tmp_path):
    one = draw_png(thefts().slice(0, 1), tmp_path / "new" / "one.png", THEFTS)
    three = draw_png(thefts(), tmp_path / "three.png", THEFTS)
    assert png_size(one)[0] == png_size(three)[0] == 2480
    assert png_size(one)[1] < png_size(three)[1]


def texts_drawn(monkeypatch, matches, path, options, context=None) -> list[str]:
    from matplotlib.text import Text

    drawn = []
    original = Text.draw

    def draw(self, *arguments, **named):
        drawn.append(self.get_text())
        return original(self, *arguments, **named)

    monkeypatch.setattr(Text, "draw", draw)
    draw_png(matches, path, options, context=context)
    return drawn


def test_png_carries_the_labels(tmp_path, monkeypatch):
    drawn = texts_drawn(monkeypatch, thefts(), tmp_path / "t.png", THEFTS)
    for text in (
        "Shoplifting",
        "SHELF-READING",
        "no COUNTER-READING",
        "tag-1",
        "tag-2",
        "wool jumper",
        "lasts 20 min",
        "08:05:00",
        "exit-2",
        "x",
        "z",
        "window 12 h",
        "window ends 20:05:00",
        "+5 min",
    ):
        assert text in drawn


def test_png_writes_dollar_signs_as_they_are(tmp_path, monkeypatch):
    odd = pa.Table.from_pylist([theft("tag-$1", 5, 25, product="$5 \\frac{ off$")])
    drawn = texts_drawn(monkeypatch, odd, tmp_path / "t.png", THEFTS)
    assert "$5 \\frac{ off$" in drawn


def test_html_carries_the_labels_and_needs_nothing_else(tmp_path):
    path = write_html(thefts(), tmp_path / "new" / "t.html", THEFTS, context=None)
    page = path.read_text("utf-8")
    assert "<title>Shoplifting</title>" in page
    for text in ("SHELF-READING", "no COUNTER-READING", "tag-2", "08:05:00", "exit-2", "+5 min"):
        assert text in page
    assert not re.search(r"<(script|link)[^>]*\b(src|href)=", page)
    again = write_html(thefts(), tmp_path / "again.html", THEFTS)
    assert again.read_bytes() == path.read_bytes()


def test_html_escapes_what_the_data_says(tmp_path):
    attack = "</script><script>alert(1)</script><b>x"
    odd = pa.Table.from_pylist([theft("tag-1", 5, 25, product=attack)])
    page = write_html(odd, tmp_path / "t.html", THEFTS).read_text("utf-8")
    assert "<script>alert(1)" not in page


@pytest.mark.parametrize("draw", [draw_png, write_html])
def test_no_matches_give_a_picture_that_says_so(tmp_path, draw):
    path = draw(thefts().slice(0, 0), tmp_path / "none", THEFTS)
    assert path.stat().st_size > 1000
    assert build_timeline(thefts().slice(0, 0), THEFTS).subtitle == "no match"
