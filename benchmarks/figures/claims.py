"""Writes CLAIMS.md, the table of what the papers claim and what holds here, from the results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import FIGURES
from benchmarks.figures.figure import HERE, Record, draw

HEAD = """\
# What the papers claim, and what holds here

Written by `python -m benchmarks claims` from the raw runs in `*/results/`; not edited by hand.
N1 to N6 are claims of the NEXT paper (DEBS 2009), all others of the SASE paper (SIGMOD 2006).
A claim is judged by counters first (steps and instances; edges, entries pushed, sequences built)
and by CPU time second; by its shape, never by the paper's absolute numbers, which belong to
machines and to Erlang and Java programs of their time. "no" is a finding: the figure's README says
why. S8, an order of magnitude on such a machine, is no gate and is not measured.

| claim | the paper says | expected here | measured | holds |
|---|---|---|---|---|
"""


def write_claims(folder: Path = HERE) -> Path:
    """Draw every figure that has results anew and write the table of all their claims."""
    records = dict(results(folder))
    rows = [
        (each["name"], name, each)
        for name, record in records.items()
        for each in record["paper_claims"]
    ]
    lines = [
        "| "
        + " | ".join(
            _cell(text)
            for text in (
                f"[{claim}]({FIGURES[name]}/README.md)",
                each["claim"],
                each["expected"],
                each["measured"],
                "yes" if each["holds"] else "**no**",
            )
        )
        + " |"
        for claim, name, each in sorted(rows, key=lambda row: row[0])
    ]
    runs = [
        f"- `{FIGURES[name]}`: commit {(record['machine']['commit'] or 'unknown')[:10]}, "
        f"{record['machine']['taken']}, {record['machine']['cpu']}, "
        f"{record['machine']['cores']} cores"
        for name, record in records.items()
    ]
    path = folder / "CLAIMS.md"
    path.write_text(HEAD + "\n".join([*lines, "", "Runs:", "", *runs]) + "\n", encoding="utf-8")
    return path


def results(folder: Path) -> Iterator[tuple[str, Record]]:
    """Name and record of every figure with full-size results; its picture is drawn anew."""
    for name, figure in FIGURES.items():
        path = folder / figure / "results" / f"{figure}.json"
        if path.exists():
            record: Record = json.loads(path.read_text(encoding="utf-8"))
            draw(figure, record, folder / figure)
            yield name, record


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
