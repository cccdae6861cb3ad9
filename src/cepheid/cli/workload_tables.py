"""A plain table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_LEAST_WIDTH = 100


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns; a column whose name begins with `>` holds numbers."""
    console = Console()
    if console.width < _LEAST_WIDTH and not console.is_terminal:
        console.width = _LEAST_WIDTH
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name in columns:
        is_number = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(escape(each) for each in row))
    console.print(table)
