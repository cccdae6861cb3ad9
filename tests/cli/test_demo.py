"""`cepheid demo` in process: the right thieves, readable, with pictures that exist."""

from __future__ import annotations

from cepheid.cli import demo
from cepheid.generate import StoreParameters, generate_store


def test_demo_in_process(cepheid_command, tmp_path):
    result = cepheid_command(
        "demo", "--host", "process", "--events", "3000", "--thieves", "5", "--limit", "3",
        "--out", tmp_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "exactly the 5 stolen items" in result.stdout
    assert "and 2 more items" in result.stdout
    stolen = sorted(generate_store(StoreParameters(events=3000, thieves=5)).stolen)
    assert sum(tag in result.stdout for tag in stolen) == 3
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert "COUNTER-READING" in (tmp_path / "timeline.html").read_text("utf-8")
    assert str(tmp_path / "timeline.png") in result.stdout
    assert len(list((tmp_path / "readings").glob("*.parquet"))) == 8


def test_demo_refuses_a_wrong_answer(cepheid_command, monkeypatch, tmp_path):
    found = demo._find

    def lose_one(*arguments):
        return found(*arguments).slice(1)

    monkeypatch.setattr(demo, "_find", lose_one)
    result = cepheid_command(
        "demo", "--host", "process", "--events", "1000", "--thieves", "3", "--out", tmp_path
    )
    assert result.exit_code == 2
    assert "error[wrong-answer]" in result.stderr
