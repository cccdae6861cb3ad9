"""Statistics of events for people."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cepheid.model.event_time import duration_text
from cepheid.report.time_axis import DAY, HOUR, MINUTE, SECOND, TimeScale
from cepheid.statistics.event_statistics import EventStatistics

_FREQUENT_SHOWN = 2
_LONGEST_TEXT = 16
_LEAST_WIDTH = 100
_UNITS = ((SECOND, "s"), (MINUTE, "min"), (HOUR, "h"), (DAY, "day"))


def show_statistics(statistics: EventStatistics) -> None:
    """Print the stream's figures, a table of its types and one of their attributes."""
    console = Console()
    if console.width < _LEAST_WIDTH and not console.is_terminal:
        console.width = _LEAST_WIDTH
    is_timestamp = statistics.time_unit == "us"
    console.print(f"{statistics.events:,} events of {len(statistics.types)} types")
    if statistics.first is not None:
        span = duration_text(statistics.span, is_timestamp=is_timestamp)
        console.print(f"span {_rounded(statistics.span, is_timestamp) or span}")
    if statistics.disorder:
        late = duration_text(statistics.disorder, is_timestamp=is_timestamp)
        console.print(f"out of order by up to {late}")
    if statistics.unusable:
        console.print(f"{statistics.unusable:,} rows have no type or no time")
    console.print(_types_table(statistics, is_timestamp))
    console.print(_attributes_table(statistics))


def _types_table(statistics: EventStatistics, is_timestamp: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("type", style="cyan")
    for name in ("events", "rate", "mean gap", "median", "99 %"):
        table.add_column(name, justify="right")
    for name, each in statistics.types.items():
        gaps = [each.gaps.mean, each.gaps.median, each.gaps.p99] if each.gaps else []
        told = [_rounded(round(gap), is_timestamp) for gap in gaps] or ["-"] * 3
        table.add_row(name, f"{each.count:,}", _rate(each.rate, is_timestamp), *told)
    return table


def _attributes_table(statistics: EventStatistics) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("attribute", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("distinct", justify="right", no_wrap=True)
    table.add_column("null", justify="right", no_wrap=True)
    table.add_column("range")
    table.add_column("most frequent")
    for kind, each in statistics.types.items():
        table.add_row("[cyan]{}[/cyan]".format(kind.replace("[", r"\[")))
        for name, attribute in each.attributes.items():
            distinct = f"{'' if attribute.is_exact else '~'}{attribute.distinct:,}"
            frequent = ", ".join(
                f"{_text(value)} {share:.0%}"
                for value, share in attribute.frequent[:_FREQUENT_SHOWN]
                if share >= 0.01
            )
            table.add_row(
                f"  {name}",
                attribute.type,
                distinct,
                f"{attribute.null_fraction:.0%}" if attribute.null_fraction else "",
                f"{_text(attribute.least)} to {_text(attribute.greatest)}",
                frequent,
            )
    return table


def _rounded(amount: int, is_timestamp: bool) -> str:
    if is_timestamp and amount >= SECOND:
        return TimeScale(UTC).duration(amount)
    return duration_text(amount, is_timestamp=is_timestamp)


def _rate(rate: float, is_timestamp: bool) -> str:
    if not is_timestamp:
        return f"{rate:.3g} per tick"
    for unit, name in _UNITS:
        if rate * unit >= 1:
            return f"{rate * unit:,.3g} per {name}"
    return f"{rate * DAY:.3g} per day"


def _text(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return (text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…").replace(
        "[", r"\["
    )
