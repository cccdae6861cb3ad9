"""Managers with real nodes over a folder of the test."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cepheid.manager.manager import Manager
from cepheid.manager.setting import Wish, settle
from cepheid.manager.state_folder import StateFolder


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Callable[..., Manager]]:
    """Starts managers on one state folder; each ends before the next one starts."""
    opened: list[tuple[Manager, StateFolder]] = []

    def end() -> None:
        while opened:
            manager, folder = opened.pop()
            manager.end()
            folder.close()

    def start(**wishes: Any) -> Manager:
        end()
        folder = StateFolder(tmp_path / "state")
        wish = Wish(events=tmp_path / "events", out=tmp_path / "matches", **wishes)
        manager = Manager(folder, settle(folder, wish))
        opened.append((manager, folder))
        manager.recover()
        return manager

    start.end = end  # type: ignore[attr-defined]
    yield start
    with suppress(ProcessLookupError):
        end()


def delivered(out: Path) -> dict[str, Counter[str]]:
    """The matches in the files of a folder: how often each is there, by query."""
    found: dict[str, Counter[str]] = {}
    for file in sorted(out.glob("[!.]*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            match: Mapping[str, Any] = json.loads(line)
            found.setdefault(match["query"], Counter())[match["match_id"]] += 1
    return found
