"""Arguments that the commands of a workload share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

State = Annotated[
    Path,
    typer.Option(
        "--state", metavar="FOLDER", envvar="CEPHEID_STATE",
        help="The manager's folder: what it must not lose, and where it can be reached.",
    ),
]  # fmt: skip
At = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="TIME",
        help="Event time from which it counts: a number, or 2026-01-31T12:00:00Z. Else from now.",
    ),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

USUAL_STATE = Path(".cepheid")
