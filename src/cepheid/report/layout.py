"""Where everything of a timeline stands, in pixels, so that no two texts cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cepheid.report.time_axis import MILLISECOND, SECOND
from cepheid.report.timeline import Gap, Lane, Mark, Timeline

WIDTH = 1240
LEFT = 250  # room for the lanes' names
RIGHT = 190  # room for the notes about windows
PLOT_WIDTH = WIDTH - LEFT - RIGHT

MARK_SIZE = 24
LETTERS_IN_A_CIRCLE = 2  # longer names stand in a pill
LETTER_WIDTH = 6.6  # of a label in 11 px type
NAME_LETTERS, DESCRIPTION_LETTERS = 26, 34  # what the room at the left holds
LABEL_HEIGHT = 15
_LANE_PADDING = 20
_MARK_STEP = 20
_LABEL_MOVES_UP_TO = 30
_TICK_COUNT = 10

# A window this many times longer than the longest match is told in words, not drawn to scale.
_WINDOW_SHOWN_UP_TO = 1.6

PALETTE = ("#2563a8", "#c2571a", "#0f8b7d", "#7b4fa3", "#b8336a", "#4c7c1f", "#8a6d1c", "#3f5f7f")
INK = "#1d2733"
MUTED = "#667384"
FAINT = "#e6eaef"
BAND = "#f7f8fa"
SPAN = "#cfd8e3"
ABSENCE = "#b42318"
ABSENCE_FILL = "#f8d9d5"


@dataclass(frozen=True, slots=True)
class PlacedMark:
    """A mark with its x on the common axis and its y, and the lines of its label below."""

    mark: Mark
    x: int
    y: float
    lines: tuple[str, ...]
    label_x: float
    label_y: float

    @property
    def is_pill(self) -> bool:
        """Whether the variable's name is too long for a circle."""
        return len(self.mark.text) > LETTERS_IN_A_CIRCLE


@dataclass(frozen=True, slots=True)
class PlacedGap:
    """A stretch of absence; its label is dropped where there is no room for it."""

    gap: Gap
    begin: int
    end: int
    label_y: float
    has_label: bool


@dataclass(frozen=True, slots=True)
class PlacedLane:
    """A lane between two heights, with all that lies in it."""

    lane: Lane
    name: str
    notes: tuple[str, ...]
    top: float
    bottom: float
    y: float
    begin: int
    end: int
    window_end: int | None  # None when it lies beyond the picture
    window_note: str
    marks: tuple[PlacedMark, ...]
    gaps: tuple[PlacedGap, ...]
    context: tuple[PlacedMark, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole picture below its heading; y grows downwards from 0."""

    lanes: tuple[PlacedLane, ...]
    height: float
    low: int
    high: int
    ticks: tuple[tuple[int, str], ...]


def colours(timeline: Timeline) -> dict[str, str]:
    """A colour for each variable, in pattern order."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(timeline.variables)}


def lay_out(timeline: Timeline) -> Layout:
    """Place lanes below each other, each as high as its labels need."""
    low, high = _bounds(timeline)
    pixels_per_unit = PLOT_WIDTH / (high - low)
    lanes = []
    top = 0.0
    for lane in timeline.lanes:
        placed = _place_lane(timeline, lane, top, low, high, pixels_per_unit)
        lanes.append(placed)
        top = placed.bottom
    first = 0 if timeline.elapsed else low
    ticks = timeline.scale.ticks(first, high, _TICK_COUNT, elapsed=timeline.elapsed)
    return Layout(tuple(lanes), top, low, high, tuple(ticks) if lanes else ())


def stack(centres: Sequence[float], widths: Sequence[float]) -> list[int]:
    """
    The lowest level for each box at which it touches no box before it.

    >>> stack([0, 5, 100], [20, 20, 20])
    [0, 1, 0]
    """
    placed: list[tuple[int, float, float]] = []
    for centre, width in zip(centres, widths, strict=True):
        low, high = centre - width / 2, centre + width / 2
        taken = {level for level, begin, end in placed if begin < high and low < end}
        level = next(level for level in range(len(placed) + 1) if level not in taken)
        placed.append((level, low, high))
    return [level for level, _, _ in placed]


def spread(centres: Sequence[float], widths: Sequence[float], most: float) -> list[float] | None:
    """
    Move boxes, given from left to right, apart just enough; None if one moved more than `most`.

    >>> spread([0, 10, 100], [20, 20, 20], 8)
    [-5.0, 15.0, 100.0]
    """
    # Boxes that touch form a cluster, centred where its boxes would be on average.
    clusters: list[tuple[list[int], float, float]] = []  # boxes, centre, width
    for i, (centre, width) in enumerate(zip(centres, widths, strict=True)):
        boxes, middle, total = [i], float(centre), float(width)
        while clusters and clusters[-1][1] + clusters[-1][2] / 2 > middle - total / 2:
            left, left_middle, left_total = clusters.pop()
            middle = (len(left) * left_middle + len(boxes) * middle) / (len(left) + len(boxes))
            boxes, total = left + boxes, left_total + total
        clusters.append((boxes, middle, total))
    moved = [0.0] * len(centres)
    for boxes, middle, total in clusters:
        edge = middle - total / 2
        for i in boxes:
            moved[i] = edge + widths[i] / 2
            edge += widths[i]
    far = any(abs(new - old) > most for new, old in zip(moved, centres, strict=True))
    return None if far else moved


def _bounds(timeline: Timeline) -> tuple[int, int]:
    """The ends of the axis, with room for half a mark on both sides."""
    if not timeline.lanes:
        return 0, 1
    begins, ends = [], []
    for lane in timeline.lanes:
        earliest = min([lane.start, *(gap.begin for gap in lane.gaps)])
        latest = max([lane.end, *(gap.end for gap in lane.gaps)])
        begins.append(timeline.position(lane, earliest))
        ends.append(timeline.position(lane, latest))
    longest = max(1, max(lane.end - lane.start for lane in timeline.lanes))
    if timeline.window is not None and timeline.window <= _WINDOW_SHOWN_UP_TO * longest:
        ends += [timeline.position(lane, lane.start + timeline.window) for lane in timeline.lanes]
    low, high = min(begins), max(ends)
    padding = max(1, (high - low) * 4 // 100)
    return low - padding, high + padding


def _place_lane(
    timeline: Timeline, lane: Lane, top: float, low: int, high: int, pixels_per_unit: float
) -> PlacedLane:
    def x(time: int) -> int:
        return timeline.position(lane, time)

    def pixels(time: int) -> float:
        return (x(time) - low) * pixels_per_unit

    mark_levels = stack([pixels(m.time) for m in lane.marks], [_mark_width(m) for m in lane.marks])
    gap_widths = [len(gap.label) * LETTER_WIDTH + 8 for gap in lane.gaps]
    gap_levels = stack([pixels((g.begin + g.end) // 2) for g in lane.gaps], gap_widths)
    above = max([_MARK_STEP * level for level in mark_levels] + [0.0])
    gap_rows = max(gap_levels, default=-1) + 1
    y = top + _LANE_PADDING + gap_rows * LABEL_HEIGHT + max(above, MARK_SIZE / 2)

    labels = _labels(timeline, lane)
    labelled = [i for i, lines in enumerate(labels) if lines]
    centres = [pixels(lane.marks[i].time) for i in labelled]
    widths = [max(map(len, labels[i])) * LETTER_WIDTH + 8 for i in labelled]
    # Neighbours' labels move a little apart; where that is not enough, they go below each other.
    moved = spread(centres, widths, _LABEL_MOVES_UP_TO)
    levels = stack(centres, widths) if moved is None else [0] * len(labelled)
    centre_of = dict(zip(labelled, moved or centres, strict=True))
    level_of = dict(zip(labelled, levels, strict=True))
    label_height = max((len(lines) for lines in labels), default=0) * LABEL_HEIGHT + 3
    label_top = y + MARK_SIZE / 2 + 4
    marks = tuple(
        PlacedMark(
            mark=mark,
            x=x(mark.time),
            y=y - _MARK_STEP * mark_levels[i],
            lines=labels[i],
            label_x=low + centre_of.get(i, 0) / pixels_per_unit,
            label_y=label_top + level_of.get(i, 0) * label_height,
        )
        for i, mark in enumerate(lane.marks)
    )
    gaps = tuple(
        PlacedGap(
            gap,
            x(gap.begin),
            x(gap.end),
            y - max(above, 7.0) - 3 - LABEL_HEIGHT * (gap_levels[i] + 0.5),
            pixels(gap.end) - pixels(gap.begin) > gap_widths[i] + MARK_SIZE,
        )
        for i, gap in enumerate(lane.gaps)
    )
    bottom = label_top + (max(levels, default=0) + 1) * label_height + _LANE_PADDING - 8
    window_end = None if lane.window_end is None else x(lane.window_end)
    beyond = window_end is not None and window_end > high
    notes = (lane.description, f"lasts {timeline.scale.duration(lane.end - lane.start)}")
    note = ""
    if lane.window_end is not None:
        note = f"window ends {_instant(timeline, lane.window_end)}"
    return PlacedLane(
        lane=lane,
        name=_clip(lane.name, NAME_LETTERS),
        notes=tuple(_clip(note, DESCRIPTION_LETTERS) for note in notes if note),
        top=top,
        bottom=bottom,
        y=y,
        begin=x(lane.start),
        end=x(lane.end),
        window_end=None if beyond else window_end,
        window_note=note,
        marks=marks,
        gaps=gaps,
        context=tuple(
            PlacedMark(mark, x(mark.time), y, (), x(mark.time), y)
            for mark in lane.context
            if low <= x(mark.time) <= high
        ),
    )


def _mark_width(mark: Mark) -> float:
    letters = len(mark.text)
    return MARK_SIZE - 2.0 if letters <= LETTERS_IN_A_CIRCLE else letters * LETTER_WIDTH + 16


def _clip(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _labels(timeline: Timeline, lane: Lane) -> list[tuple[str, ...]]:
    """Time and detail of each mark; of an iterated variable only of its first and last event."""
    places: dict[str | None, list[int]] = {}
    for i, mark in enumerate(lane.marks):
        places.setdefault(mark.variable, []).append(i)
    spoken = {i for own in places.values() for i in (own[0], own[-1])}
    return [
        tuple(text for text in (_instant(timeline, mark.time), mark.detail) if text)
        if i in spoken
        else ()
        for i, mark in enumerate(lane.marks)
    ]


def _instant(timeline: Timeline, time: int) -> str:
    scale = timeline.scale
    days = {scale.moment(t).date() for lane in timeline.lanes for t in (lane.start, lane.end)}
    shortest = min(lane.end - lane.start for lane in timeline.lanes)
    precision = SECOND if shortest >= 5 * SECOND else MILLISECOND
    # The heading names the day when there is only one.
    with_date = len(days) > 1 or scale.moment(time).date() not in days
    return scale.instant(time, precision=precision, with_date=with_date)
