"""A sink proxy: a process that delivers the matches of some queries (NEXT, section 4.1).

It remembers nothing. One file holds what its queries found in one batch of events; it gets its name
when it is whole and on the disk, and doing a batch again writes the same file again.
"""

from __future__ import annotations

import os
from pathlib import Path

from cepheid.delivery.match_files import open_match_file
from cepheid.hosts.snapshot import read_table
from cepheid.manager.durable import flush_to_disk
from cepheid.manager.wire import Frame
from cepheid.manager.worker_main import answer_frames
from cepheid.model.lean_process import leave_out_libraries


def deliver(frame: Frame) -> Frame:
    """Write the tables of a frame, each of one query, as lines of JSON."""
    if frame.head["do"] == "start":
        return Frame({})
    path = Path(frame.head["path"])
    # A proxy of a manager that was killed may still be at the same file: each has its own draft.
    draft = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    tables = [read_table(part) for part in frame.parts]
    with open_match_file(draft, "jsonl", tables[0].schema) as file:
        for table in tables:
            file.write(table)
    flush_to_disk(draft)
    draft.replace(path)
    flush_to_disk(path.parent)
    return Frame({})


if __name__ == "__main__":
    leave_out_libraries()
    answer_frames(deliver)
