"""One life of a manager in a process of its own, which may kill itself at a moment it is told.

Called with a state folder and the number of the moment at which to die (0: never). What must not be
lost is written to the journal, or flushed to the disk before it gets its name: dying before, in and
after each of these is dying at every point that matters.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pyarrow as pa

from cepheid.manager.manager import Manager
from cepheid.manager.setting import Wish, settle
from cepheid.manager.state_folder import StateFolder
from cepheid.model.lean_process import leave_out_libraries

PAIR = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 30"
GUARDED = "EVENT SEQ(A x, !(C n), B y) WHERE [id] WITHIN 30"
SINK = "register sink q as file 'sunk/late.jsonl' QUERY q "
AFTER = "SELECT * FROM D d ; B b WHERE d.id = b.id"
FILES = 6


def events(number: int) -> pa.Table:
    """The events of a file, the same in every life."""
    chance = random.Random(number)
    times = sorted(number * 100 + chance.randrange(100) for _ in range(60))
    return pa.table(
        {
            "type": [chance.choice("AABBCDE") for _ in times],
            "ts": times,
            "id": [chance.randrange(4) for _ in times],
            "number": [number * 1000 + n for n in range(len(times))],
        }
    )


def live(state: Path) -> None:
    """Do what is not done yet: submit the queries, take the files, deliver the matches."""
    folder = StateFolder(state / "state")
    wish = Wish(
        events=state / "events",
        out=state / "matches",
        sinks=2,
        checkpoint_every=2,
        longest_journal=999,
    )
    manager = Manager(folder, settle(folder, wish))
    manager.recover()
    known = manager.entries.by_name
    if not manager.files:
        for name, text, at in (
            ("all", PAIR, None),
            ("rests", GUARDED, None),
            ("late", SINK + AFTER, 350),
        ):
            if name not in known:
                manager.submit(text, name=name, at=at, folder=str(state))
        manager.pause("rests", at=250)
    for number in range(FILES):
        while manager.has_waiting:
            manager.do_batch()
            if manager.wants_checkpoint:
                manager.checkpoint()
        if f"{number}.csv" not in manager.files:
            manager.take_file(f"{number}.csv", {}, events(number).to_batches(max_chunksize=35))
    while manager.has_waiting:
        manager.do_batch()
    manager.end()
    folder.close()


def die_at(moment: int) -> None:
    """Let the process kill itself: before a line of the journal, or when half of it is written; or
    before or after something is flushed to the disk.
    """
    write, fsync, passed = os.write, os.fsync, 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def dying_write(descriptor: int, line: bytes) -> int:
        nonlocal passed
        passed += 1
        if passed == moment:
            if moment % 2 == 0:
                write(descriptor, line[: len(line) // 2])
            die()
        return write(descriptor, line)

    def dying_fsync(descriptor: int) -> None:
        nonlocal passed
        passed += 1
        if passed == moment and moment % 2 == 0:
            die()
        fsync(descriptor)
        if passed == moment:
            die()

    os.write, os.fsync = dying_write, dying_fsync


if __name__ == "__main__":
    leave_out_libraries()
    die_at(int(sys.argv[2]))
    live(Path(sys.argv[1]))
