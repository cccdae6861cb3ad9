"""A sink proxy: a process that delivers the matches of some queries (NEXT, section 4.1).

It remembers nothing. One file holds what its queries found in one batch of events; it gets its name
when it is whole and on the disk, and doing a batch again writes the same file again. What is added
to a file that grows it hands back as bytes: only the manager knows where they go.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.delivery.match_files import match_bytes, open_match_file
from cepheid.delivery.nested_columns import plain_table
from cepheid.hosts.snapshot import read_table
from cepheid.manager.durable import flush_to_disk
from cepheid.manager.parent_death import die_with_parent
from cepheid.manager.registered_sink import Way
from cepheid.manager.wire import Frame
from cepheid.manager.worker_main import answer_frames
from cepheid.model.lean_process import leave_out_libraries

_SHOWN = 20
"""Matches of a batch that a console shows."""


def deliver(frame: Frame) -> Frame:
    """Deliver the tables of a frame: to files of the batch, as bytes, and for people to see.

    `files` tell how each group of tables is written, `tables` how many tables each has, in order.
    """
    if frame.head["do"] == "start":
        return Frame({})
    tables = [read_table(part) for part in frame.parts]
    grown: list[bytes] = []
    for file in frame.head["files"]:
        own = [tables[number] for number in file["tables"]]
        if file["way"] == Way.GROWING_FILE:
            grown.append(match_bytes(own, file["format"], begins=file["begins"]))
        else:
            _write_whole(Path(file["path"]), file["format"], own)
    for shown in frame.head["shown"]:
        _show(shown, tables[shown["table"]])
    return Frame({}, grown)


def _write_whole(path: Path, form: str, tables: Sequence[pa.Table]) -> None:
    # A proxy of a manager that was killed may still be at the same file: each has its own draft.
    draft = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    with open_match_file(draft, form, tables[0].schema) as file:
        for table in tables:
            file.write(table)
    flush_to_disk(draft)
    draft.replace(path)
    flush_to_disk(path.parent)


def _show(shown: Mapping[str, Any], table: pa.Table) -> None:
    """Show the first matches as `cepheid run` does; standard output is the manager's terminal."""
    # Loaded only for a console.
    from cepheid.delivery.match_table import show_matches_of  # noqa: PLC0415
    from cepheid.model.options import make_options  # noqa: PLC0415
    from cepheid.planner.compiled_query import compile_text  # noqa: PLC0415

    query = compile_text(shown["text"], shown["language"])[shown["query"]]
    first = plain_table(table.slice(0, _SHOWN))
    show_matches_of(
        query, make_options(shown["options"]), first, table.num_rows, title=shown["name"]
    )
    sys.stdout.flush()


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    leave_out_libraries()
    answer_frames(deliver)
