"""Written events come back as they were, from every format."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from cepheid.generate import (
    StoreParameters,
    StreamParameters,
    generate_batches,
    generate_store,
    generate_stream,
    write_events,
)
from cepheid.generate.writing import ROWS_PER_GROUP
from cepheid.model.errors import OptionError

STREAM = StreamParameters(events=3000, attributes=2, null_fraction=0.1)


def test_parquet_in_one_file(tmp_path):
    path = tmp_path / "events.parquet"
    assert write_events(generate_stream(STREAM), path) == 3000
    assert pa.parquet.read_table(path).equals(generate_stream(STREAM))
    assert [file.name for file in tmp_path.iterdir()] == ["events.parquet"]


def test_row_groups_do_not_depend_on_the_batches(tmp_path):
    parameters = StreamParameters(events=2 * ROWS_PER_GROUP + 5, attributes=1)
    for rows_per_batch in (10_000, 1_000_000):
        path = tmp_path / f"{rows_per_batch}.parquet"
        write_events(generate_batches(parameters, rows_per_batch), path)
        metadata = pa.parquet.read_metadata(path)
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        assert sizes == [ROWS_PER_GROUP, ROWS_PER_GROUP, 5]


def test_folder_of_files_in_time_order(tmp_path):
    folder = tmp_path / "events"
    assert write_events(generate_batches(STREAM, 700), folder, rows_per_file=1000) == 3000
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    files = [pa.parquet.read_table(folder / name) for name in names]
    assert [file.num_rows for file in files] == [1000, 1000, 1000]
    assert pa.concat_tables(files).equals(generate_stream(STREAM))


def test_a_shorter_stream_leaves_no_parts_of_the_longer_one(tmp_path):
    folder = tmp_path / "events"
    write_events(generate_stream(STREAM), folder, rows_per_file=1000)
    short = generate_stream(StreamParameters(events=10, attributes=2))
    with pytest.raises(OptionError) as caught:
        write_events(short, folder)
    assert caught.value.code == "output-exists"
    write_events(short, folder, overwrite=True)
    assert pa.dataset.dataset(folder).count_rows() == 10


def test_csv(tmp_path):
    path = tmp_path / "store" / "events.csv"
    readings = generate_store(StoreParameters(events=500, thieves=1)).readings
    assert write_events(readings, path) == 500
    back = pa.csv.read_csv(path)
    assert back.column_names == readings.column_names
    assert back["ts"].cast(readings.schema.field("ts").type).equals(readings["ts"])
    assert back["id"].to_pylist() == readings["id"].to_pylist()
    assert back["type"].to_pylist() == readings["type"].to_pylist()


def test_json_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    readings = generate_store(StoreParameters(events=200, thieves=1)).readings
    write_events(readings, path)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(rows) == 200
    expected = readings.to_pylist()
    assert [row["id"] for row in rows] == [row["id"] for row in expected]
    assert rows[0]["ts"] == expected[0]["ts"].isoformat().replace("+00:00", "Z")
    counter = next(row for row in rows if row["type"] != "SHELF-READING")
    assert counter["shelf_id"] is None


@pytest.mark.parametrize("name", ["events.parquet", "events.csv", "events"])
def test_no_events_still_have_columns(tmp_path, name):
    path = tmp_path / name
    assert write_events(generate_stream(StreamParameters(events=0)), path) == 0
    source = path / "part-00000.parquet" if path.is_dir() else path
    if source.suffix == ".csv":
        assert source.read_text().startswith('"type","ts"')
    else:
        assert "attr1" in pa.parquet.read_schema(source).names


def test_a_failure_leaves_no_half_file(tmp_path):
    def broken():
        yield from generate_batches(STREAM, 1000)
        raise RuntimeError("the source broke")

    for name in ("events.parquet", "events.csv", "events.jsonl"):
        with pytest.raises(RuntimeError, match="broke"):
            write_events(broken(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_kept_unless_told(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("precious")
    with pytest.raises(OptionError, match="exists"):
        write_events(generate_stream(STREAM), path)
    assert path.read_text() == "precious"
    write_events(generate_stream(STREAM), path, overwrite=True)
    assert path.read_text() != "precious"


def test_unknown_suffix(tmp_path):
    with pytest.raises(OptionError) as caught:
        write_events(generate_stream(STREAM), tmp_path / "events.xlsx")
    assert caught.value.code == "unknown-format"
    assert list(tmp_path.iterdir()) == []
