"""A manager that is killed again and again, at moments of all kinds, loses and repeats nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cepheid
from tests.manager import a_managers_life
from tests.manager.a_managers_life import AFTER, FILES, GUARDED, PAIR, events
from tests.manager.conftest import delivered

ROOT = Path(__file__).parents[2]


def lives(state: Path, deaths: list[int]) -> None:
    """Lives that end by a kill, and a last one that ends well."""
    for moment in [*deaths, 0]:
        done = subprocess.run(
            [sys.executable, "-m", a_managers_life.__name__, str(state), str(moment)],
            cwd=ROOT, env=os.environ, timeout=120, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == (-signal.SIGKILL if moment else 0), done.stderr


def expected() -> dict[str, list[str]]:
    whole = pa.concat_tables([events(number) for number in range(FILES)])
    seen = {
        "all": (PAIR, whole),
        "rests": (GUARDED, whole.filter(pc.field("ts") < 250)),
        "late": (AFTER, whole.filter(pc.field("ts") >= 350)),
    }
    return {
        name: sorted(cepheid.detect(some, text, close_at_end=False)["match_id"].to_pylist())
        for name, (text, some) in seen.items()
    }


@pytest.mark.kill
def test_a_manager_that_is_killed_at_any_point_goes_on(tmp_path):
    # Before a pause is written down; when a batch is delivered and half of the line that says so is
    # written; in the midst of a checkpoint; when a file has grown, before that is written down.
    lives(tmp_path, [9, 12, 10, 66])
    found = delivered(tmp_path / "matches")
    found |= delivered(tmp_path / "sunk")  # the query `late` has a file of its own
    assert {name: sorted(ids) for name, ids in found.items()} == expected()
    assert all(count == 1 for ids in found.values() for count in ids.values())
