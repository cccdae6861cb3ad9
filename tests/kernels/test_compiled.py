"""Where kernels are kept, where nobody else may put code; and how often they are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.kernels import compiled
from cepheid.kernels.compiled import cache_folder


def test_the_chosen_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path / "kernels"))
    assert cache_folder() == tmp_path / "kernels"
    assert (tmp_path / "kernels").stat().st_mode & 0o077 == 0


def test_a_folder_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("CEPHEID_CACHE", str(open_to_all))
    assert cache_folder() != open_to_all


def test_a_kernel_is_compiled_once_however_its_arrays_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one piece or not, read-only or not: else numba compiles in the middle of a stream."""
    mine: dict[str, Any] = {}
    monkeypatch.setattr(compiled, "_modules", mine)  # as if no kernel had been loaded before
    texts = (
        "EVENT SEQ(A x, !(B n), C z) WHERE x.odd < z.odd AND n.odd > x.odd WITHIN 20",
        "EVENT SEQ(A x, C z) WHERE x.odd + 1 < z.odd AND x.odd > z.even WITHIN 20",
    )
    for text in texts:
        detector = cepheid.Detector(text, tie="seqno")
        found = 0
        for kinds in ("ABC", "AC", "AAACCC", "XAXC", "AXXX", "C"):
            first = detector.watermark + 1 if found else 0
            rows = [
                {"type": kind, "ts": first + n, "odd": 2 * n + 1, "even": 0}
                for n, kind in enumerate(kinds)
            ]
            found += len(detector.feed(pa.Table.from_pylist(rows)))
            columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
            columns["ts"] += len(kinds)
            found += len(detector.feed(pa.table(columns)))
        assert found > 10
    functions = [
        getattr(module, name)
        for module in mine.values()
        for name in ("kernel", "probe")
        if hasattr(module, name)
    ]
    assert len(functions) >= 3
    assert [len(function.signatures) for function in functions] == [1] * len(functions)
