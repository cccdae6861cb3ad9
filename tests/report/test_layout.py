"""No two texts of a timeline cover each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.report.layout import LABEL_HEIGHT, LETTER_WIDTH, PLOT_WIDTH, lay_out, spread, stack
from cepheid.report.timeline import Absence, TimelineOptions, build_timeline


def overlap(a, b):
    return a[0] < b[1] and b[0] < a[1]


@pytest.mark.parametrize("seed", range(20))
def test_stacked_and_spread_boxes_never_touch(seed):
    random = np.random.default_rng(seed)
    centres = np.sort(random.uniform(0, 300, 8)).tolist()
    widths = random.uniform(5, 60, 8).tolist()
    levels = stack(centres, widths)
    boxes = [(c - w / 2, c + w / 2) for c, w in zip(centres, widths, strict=True)]
    for i, j in combinations(range(8), 2):
        assert levels[i] != levels[j] or not overlap(boxes[i], boxes[j])
    moved = spread(centres, widths, 1000)
    assert moved is not None
    for i in range(7):
        assert moved[i] + widths[i] / 2 <= moved[i + 1] - widths[i + 1] / 2 + 1e-9


def test_spread_gives_up_rather_than_move_far():
    assert spread([0, 0, 0], [100, 100, 100], 30) is None
    assert spread([0, 100], [20, 20], 0) == [0, 100]


@pytest.mark.parametrize("seed", range(10))
def test_labels_of_a_lane_do_not_cover_each_other(seed):
    random = np.random.default_rng(seed)
    row = {"match_id": 1, "query": "q"}
    times = np.sort(random.integers(0, 500, 7))
    row |= {"start": int(times[0]), "end": int(times[-1])}
    row |= {f"v{i}": {"ts": int(time), "place": "p" * 12} for i, time in enumerate(times)}
    timeline = build_timeline(pa.Table.from_pylist([row]), TimelineOptions(detail=["place"]))
    layout = lay_out(timeline)
    pixels_per_unit = PLOT_WIDTH / (layout.high - layout.low)
    boxes = []
    for mark in layout.lanes[0].marks:
        half = max(map(len, mark.lines)) * LETTER_WIDTH / 2
        middle = (mark.label_x - layout.low) * pixels_per_unit
        top = mark.label_y
        boxes.append(((middle - half, middle + half), (top, top + LABEL_HEIGHT * len(mark.lines))))
        assert top + LABEL_HEIGHT * len(mark.lines) <= layout.lanes[0].bottom
    for a, b in combinations(boxes, 2):
        assert not (overlap(a[0], b[0]) and overlap(a[1], b[1]))


def test_lanes_follow_each_other_and_hold_their_marks():
    rows = [
        {"start": 10 * i, "end": 10 * i + 5, "a": {"ts": 10 * i}, "b": {"ts": 10 * i + 5}}
        for i in range(4)
    ]
    absences = [Absence("C", "a", "b"), Absence("D", "a", "b")]
    options = TimelineOptions(absences=absences, window=6, axis="clock")
    layout = lay_out(build_timeline(pa.Table.from_pylist(rows), options))
    assert layout.lanes[0].top == 0
    for upper, lower in zip(layout.lanes, layout.lanes[1:], strict=False):
        assert upper.bottom == lower.top
    for lane in layout.lanes:
        heights = [mark.y for mark in lane.marks] + [gap.label_y for gap in lane.gaps]
        assert all(lane.top < y < lane.bottom for y in heights)
        assert len({gap.label_y for gap in lane.gaps}) == 2
        assert lane.window_end is not None
        assert layout.low < lane.begin < lane.window_end < layout.high
    assert layout.height == layout.lanes[-1].bottom


def test_a_window_much_longer_than_the_match_is_told_not_drawn():
    rows = [{"start": 0, "end": 5, "a": {"ts": 0}, "b": {"ts": 5}}]
    layout = lay_out(build_timeline(pa.Table.from_pylist(rows), TimelineOptions(window=1000)))
    assert layout.lanes[0].window_end is None
    assert layout.lanes[0].window_note == "window ends 1,000"
    assert layout.high < 10
