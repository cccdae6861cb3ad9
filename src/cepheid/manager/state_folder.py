"""The folder in which a manager keeps what must not be lost (mode 0700).

lock            held while a manager runs on the folder
journal.jsonl   all that happened: queries, files taken, batches done; or its sum, and the rest
kept/           batches of events that were taken, until a checkpoint makes them superfluous
checkpoints/    snapshots of the nodes, with the place in the journal they were taken at
manager.json    where the running manager listens
token           what its clients must show
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cepheid.manager.durable import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Journal,
    flush_to_disk,
    write_whole,
)
from cepheid.model.errors import EnvironmentProblem, OptionError


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The nodes as they were after so many records of the journal."""

    folder: Path
    records: int
    facts: Mapping[str, Any]

    def snapshot(self, node: int) -> bytes:
        """The workload of a node."""
        return (self.folder / f"node-{node}.snapshot").read_bytes()


class StateFolder:
    """The files of one manager; only one at a time has the folder."""

    def __init__(self, path: Path) -> None:
        """Make the folder if it is not there, and lock it."""
        self.path = path.absolute()
        self._refuse_foreign(path)
        for folder in (self.path, self._kept, self._checkpoints):
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        self.path.chmod(PRIVATE_FOLDER)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise EnvironmentProblem.of(
                "manager-runs",
                f"a manager runs already with the state in `{path}`",
                help="end it with: cepheid workload stop --all; or give another --state",
            ) from None
        self._forget_drafts()
        self.journal = Journal(self.path / "journal.jsonl")

    def _refuse_foreign(self, told: Path) -> None:
        """A folder with other things in it is not taken over, nor closed to others."""
        there = {each.name for each in self.path.iterdir()} if self.path.exists() else set()
        if there - {"log"} and "journal.jsonl" not in there:
            raise OptionError.of(
                "not-a-state-folder",
                f"`{told}` holds other things than the state of a manager",
                help="give a folder of its own, or one that is not there yet",
            )

    def close(self) -> None:
        """Give the folder free."""
        (self.path / "manager.json").unlink(missing_ok=True)
        (self.path / "token").unlink(missing_ok=True)
        self.journal.close()
        os.close(self._lock)

    # -- where the manager is ---------------------------------------------------------------------

    def publish(self, port: int, token: str) -> None:
        """Tell clients of this user where the manager listens, and what to show it."""
        write_whole(self.path / "token", token.encode())
        place = {"port": port, "process": os.getpid()}
        write_whole(self.path / "manager.json", json.dumps(place).encode())

    # -- events that were taken -------------------------------------------------------------------

    def keep_events(self, batch: int, content: bytes) -> None:
        """Keep a batch of events, in Arrow IPC."""
        write_whole(self._kept / f"{batch:012}.arrow", content)

    def events(self, batch: int) -> bytes:
        """A batch that was kept."""
        return (self._kept / f"{batch:012}.arrow").read_bytes()

    # -- checkpoints ------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint | None:
        """The newest one."""
        whole = sorted(each for each in self._checkpoints.iterdir() if each.name.isdigit())
        if not whole:
            return None
        facts = json.loads((whole[-1] / "facts.json").read_bytes())
        return Checkpoint(whole[-1], facts["records"], facts)

    def keep_checkpoint(
        self, snapshots: Sequence[bytes], batches: int, facts: Mapping[str, Any]
    ) -> Checkpoint:
        """Keep snapshots of all nodes, taken now; older ones and events before them are let go."""
        records = self.journal.count
        folder = self._checkpoints / f"{records:012}"
        if not folder.exists():
            draft = self._checkpoints / f".{folder.name}"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=PRIVATE_FOLDER)
            for node, snapshot in enumerate(snapshots):
                write_whole(draft / f"node-{node}.snapshot", snapshot)
            told = {**facts, "records": records, "batches": batches}
            write_whole(draft / "facts.json", json.dumps(told).encode())
            draft.rename(folder)
            flush_to_disk(self._checkpoints)
        for older in self._checkpoints.iterdir():
            if older.name < folder.name:
                shutil.rmtree(older)
        for each in self._kept.iterdir():
            if each.stem.isdigit() and int(each.stem) < batches:
                each.unlink()
        return Checkpoint(folder, records, facts)

    @property
    def _kept(self) -> Path:
        return self.path / "kept"

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def _forget_drafts(self) -> None:
        """What a manager that was killed had begun to write."""
        for folder in (self.path, self._kept, self._checkpoints):
            for each in folder.iterdir():
                if each.name.startswith("."):
                    shutil.rmtree(each) if each.is_dir() else each.unlink()
