"""What must survive a kill: journals, checkpoints, the lock."""

from __future__ import annotations

import stat

import pytest

from cepheid.manager.durable import Journal
from cepheid.manager.state_folder import StateFolder
from cepheid.model.errors import EnvironmentProblem, OptionError, StateError


def test_a_journal_holds_what_was_appended(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.append({"op": "add", "text": "a\nb"})
    journal.append({"op": "done"})
    journal.close()
    again = Journal(tmp_path / "journal")
    assert again.records == [{"op": "add", "text": "a\nb"}, {"op": "done"}]
    again.close()


def test_a_line_that_was_cut_off_never_counted(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append({"n": 1})
    journal.close()
    with path.open("ab") as stream:
        stream.write(b'{"n": 2, "te')
    again = Journal(path)
    again.append({"n": 3})
    again.close()
    assert path.read_text() == '{"n":1}\n{"n":3}\n'


def test_a_journal_that_somebody_changed_is_refused(tmp_path):
    (tmp_path / "journal").write_text('{"n": 1}\nnonsense\n')
    with pytest.raises(StateError, match="line 2"):
        Journal(tmp_path / "journal")


def test_a_long_journal_begins_anew_with_its_sum(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path)
    for n in range(5):
        journal.append({"op": "n", "n": n})
    assert not journal.is_long(1000)
    assert journal.is_long(20)
    journal.begin_anew({"total": 10})
    assert (journal.count, journal.begun_at) == (5, 5)
    assert not journal.is_long(20), "it would only write the same again"
    journal.append({"op": "n", "n": 5})
    journal.close()
    again = Journal(path)
    assert again.records == [{"op": "sum", "records": 5, "total": 10}, {"op": "n", "n": 5}]
    assert (again.count, again.begun_at) == (6, 5)
    again.begin_anew({"total": 15})
    again.append({"op": "n", "n": 6})
    assert again.count == 7
    again.close()
    assert path.read_text().count("\n") == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_only_one_manager_has_the_folder_and_only_its_owner_can_read_it(tmp_path):
    folder = StateFolder(tmp_path / "state")
    folder.publish(1234, "secret")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    for name in ("token", "manager.json", "journal.jsonl"):
        assert stat.S_IMODE((tmp_path / "state" / name).stat().st_mode) == 0o600
    with pytest.raises(EnvironmentProblem, match="runs already"):
        StateFolder(tmp_path / "state")
    folder.close()
    StateFolder(tmp_path / "state").close()


def test_a_folder_with_other_things_is_not_taken_over(tmp_path):
    (tmp_path / "letters").mkdir()
    tmp_path.chmod(0o755)
    with pytest.raises(OptionError, match="other things"):
        StateFolder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_checkpoint_lets_go_of_what_came_before(tmp_path):
    folder = StateFolder(tmp_path / "state")
    for batch in range(3):
        folder.keep_events(batch, b"events")
    folder.journal.append({"op": "done"})
    folder.keep_checkpoint([b"one", b"two"], 2, {"latest": 5})
    folder.journal.append({"op": "done"})
    folder.keep_checkpoint([b"uno", b"due"], 2, {"latest": 6})
    (tmp_path / "state" / "checkpoints" / ".000000000009").mkdir()  # a kill half-way
    folder.close()
    again = StateFolder(tmp_path / "state")
    checkpoint = again.checkpoint()
    assert (checkpoint.records, checkpoint.facts["latest"]) == (2, 6)
    assert checkpoint.snapshot(1) == b"due"
    assert again.events(2) == b"events"
    with pytest.raises(FileNotFoundError):
        again.events(1)
    assert len(list((tmp_path / "state" / "checkpoints").iterdir())) == 1
    again.close()
