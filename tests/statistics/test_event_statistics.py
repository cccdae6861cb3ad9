"""The statistics file: it reads back exactly, and everything else is refused by name."""

from __future__ import annotations

import json

import pytest

from cepheid.generate import generate_medicine
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.event_statistics import (
    from_json,
    load_statistics,
    save_statistics,
    to_json,
)


@pytest.fixture
def statistics():
    collector = StatisticsCollector(Options())
    for batch in generate_medicine().readings.to_batches():
        collector.add(batch)
    return collector.finish()


def test_file_reads_back_exactly(statistics, tmp_path):
    path = tmp_path / "stats.json"
    save_statistics(statistics, path)
    assert load_statistics(path) == statistics
    assert [each.name for each in tmp_path.iterdir()] == ["stats.json"]


def test_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(DataError) as caught:
        load_statistics(tmp_path / "none.json")
    assert caught.value.code == "no-statistics"
    assert "cepheid analyze" in (caught.value.help or "")


def test_other_version_is_refused(statistics):
    document = json.loads(to_json(statistics))
    document["version"] = 99
    with pytest.raises(DataError) as caught:
        from_json(json.dumps(document))
    assert caught.value.code == "statistics-version"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("time_unit",), "h", "`time_unit`"),
        (("events",), True, "`events`"),
        (("types",), [], "`types`"),
        (("types", "MEDICINE-TAKEN"), 7, "`types.MEDICINE-TAKEN`"),
        (("types", "MEDICINE-TAKEN", "rate"), "often", "rate`"),
        (("types", "MEDICINE-TAKEN", "gaps", "p90"), None, "gaps.p90`"),
        (("types", "MEDICINE-TAKEN", "attributes", "name", "frequent"), ["x"], "name.frequent`"),
    ],
)
def test_a_broken_field_is_named(statistics, path, value, told):
    document = json.loads(to_json(statistics))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(DataError) as caught:
        from_json(json.dumps(document))
    assert caught.value.code == "bad-statistics"
    assert told in caught.value.message


@pytest.mark.parametrize("text", ["", "[1]", '{"kind": "something else"}', "{"])
def test_other_documents_are_refused(text):
    with pytest.raises(DataError) as caught:
        from_json(text)
    assert caught.value.code == "bad-statistics"
