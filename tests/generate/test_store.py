"""The store: its truth is what the paper's two queries find, told by brute force."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from cepheid.generate import StoreParameters, generate_store
from cepheid.model.errors import OptionError

HOUR = timedelta(hours=1)


def histories(store):
    by_item = {}
    for reading in store.readings.to_pylist():
        by_item.setdefault(reading["id"], []).append(reading)
    return by_item


def thefts(readings):
    """SEQ(SHELF-READING x, !(COUNTER-READING y), EXIT-READING z) of one item, within 12 hours."""
    return [
        (x, z)
        for x in readings
        for z in readings
        if x["type"] == "SHELF-READING"
        and z["type"] == "EXIT-READING"
        and x["ts"] < z["ts"] < x["ts"] + 12 * HOUR
        and not any(
            y["type"] == "COUNTER-READING" and x["ts"] < y["ts"] < z["ts"] for y in readings
        )
    ]


def misplacements(readings):
    """SEQ(SHELF x, SHELF y, !(ANY(COUNTER, SHELF) z)): moved, and not corrected within 1 hour."""
    shelf = [reading for reading in readings if reading["type"] == "SHELF-READING"]
    return [
        (x, y)
        for x in shelf
        for y in shelf
        if x["ts"] < y["ts"] < x["ts"] + HOUR
        and x["shelf_id"] != y["shelf_id"]
        and not any(
            y["ts"] < z["ts"] < x["ts"] + HOUR
            and (z["type"] == "COUNTER-READING" or z["shelf_id"] == x["shelf_id"])
            for z in readings
            if z["type"] != "EXIT-READING"
        )
    ]


@pytest.mark.parametrize("seed", range(3))
def test_truth_is_what_the_queries_find(seed):
    store = generate_store(StoreParameters(events=20_000, thieves=40, seed=seed))
    by_item = histories(store)
    matches = {item: thefts(readings) for item, readings in by_item.items()}
    assert {item for item, found in matches.items() if found} == store.stolen
    assert sum(len(found) for found in matches.values()) == store.theft_matches
    assert all(1 <= len(matches[item]) <= 3 for item in store.stolen)
    moved = {item for item, readings in by_item.items() if misplacements(readings)}
    assert moved == store.misplaced
    assert len(moved) > 5


def test_some_thieves_take_what_was_once_at_a_counter():
    store = generate_store(StoreParameters(events=5000, thieves=10))
    by_item = histories(store)
    naive = {
        item
        for item, readings in by_item.items()
        if {"EXIT-READING"} == {r["type"] for r in readings} - {"SHELF-READING"}
    }
    assert naive < store.stolen


def test_size_seed_and_order():
    parameters = StoreParameters(events=12_345, thieves=7, seed=1)
    store = generate_store(parameters)
    assert store.readings.num_rows == 12_345
    assert len(store.stolen) == 7
    times = store.readings["ts"].to_pylist()
    assert all(earlier < later for earlier, later in pairwise(times))
    assert parameters.opening <= times[0]
    assert times[-1] < parameters.opening + 12 * HOUR
    assert generate_store(parameters).readings.equals(store.readings)
    other = generate_store(StoreParameters(events=12_345, thieves=7, seed=2))
    assert other.stolen != store.stolen


def test_columns():
    store = generate_store(StoreParameters(events=2000, thieves=2))
    assert store.readings.column_names == [
        "type",
        "ts",
        "id",
        "shelf_id",
        "reader",
        "product",
        "category",
        "price",
        "manufacturer_id",
    ]
    for row in store.readings.to_pylist():
        assert (row["shelf_id"] is None) == (row["type"] != "SHELF-READING")
        place = row["type"].removesuffix("-READING").lower()
        assert row["reader"].startswith(place)


def test_store_without_thieves():
    store = generate_store(StoreParameters(events=3000, thieves=0))
    assert store.stolen == frozenset()
    assert store.theft_matches == 0


def test_smallest_store():
    assert generate_store(StoreParameters(events=10, thieves=0)).readings.num_rows == 10


@pytest.mark.parametrize(
    "wrong", [{"events": 9}, {"events": 100, "thieves": 10}, {"shelves": 1}, {"exits": 0}]
)
def test_impossible_stores_are_refused(wrong):
    with pytest.raises(OptionError):
        StoreParameters(**wrong)
