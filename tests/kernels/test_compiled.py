"""Where kernels are kept: nobody else may be able to put code there."""

from __future__ import annotations

from pathlib import Path

import pytest

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
