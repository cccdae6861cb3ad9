"""The medicine record: overdoses are exactly the ones the paper's query finds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cepheid.generate import MedicineParameters, generate_medicine


@pytest.mark.parametrize("seed", range(10))
def test_truth_is_what_the_query_finds(seed):
    record = generate_medicine(MedicineParameters(patients=12, overdoses=5, seed=seed))
    rows = record.readings.to_pylist()
    found = [
        (x["name"], x["medicine"])
        for x in rows
        for y in rows
        if x["ts"] < y["ts"] < x["ts"] + timedelta(hours=4)
        and (x["name"], x["medicine"]) == (y["name"], y["medicine"])
        and x["amount"] + y["amount"] > 1000
    ]
    assert set(found) == record.overdosed
    assert len(record.overdosed) == 5
    assert ("John", "Antibiotics") in record.overdosed


def test_seed_decides_the_rows_and_time_orders_them():
    record = generate_medicine()
    assert record.readings.equals(generate_medicine().readings)
    times = record.readings["ts"].to_pylist()
    assert times == sorted(times)
    other = generate_medicine(MedicineParameters(seed=1))
    assert not other.readings.equals(record.readings)
