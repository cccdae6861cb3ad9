"""A day of RFID readings in a store, with thieves and misplaced items (SASE paper, Figure 1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.generate.parameters import require

SHELF, COUNTER, EXIT = range(3)
READING_TYPES = ("SHELF-READING", "COUNTER-READING", "EXIT-READING")

# name, category, price in euros
PRODUCTS = (
    ("olive oil 750 ml", "food", 8.49),
    ("basmati rice 1 kg", "food", 3.29),
    ("dark chocolate", "food", 2.19),
    ("ground coffee 500 g", "food", 6.99),
    ("aged cheddar", "food", 5.75),
    ("wild salmon", "food", 14.90),
    ("sparkling water 6 x 1 l", "drinks", 3.59),
    ("single malt whisky", "drinks", 46.00),
    ("champagne brut", "drinks", 39.50),
    ("razor blades 8 pcs", "cosmetics", 21.95),
    ("eau de parfum 50 ml", "cosmetics", 64.00),
    ("sun lotion 200 ml", "cosmetics", 12.49),
    ("wool jumper", "clothes", 49.90),
    ("leather belt", "clothes", 29.95),
    ("running socks", "clothes", 9.99),
    ("headphones", "electronics", 89.00),
    ("memory card 128 GB", "electronics", 24.90),
    ("phone charger", "electronics", 19.90),
    ("batteries AA 12 pcs", "electronics", 11.49),
    ("building bricks", "toys", 34.99),
    ("card game", "toys", 12.95),
    ("teddy bear", "toys", 17.50),
    ("detective novel", "books", 10.99),
    ("travel guide", "books", 18.90),
)

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE

# Items per fate; the rest stay on their shelf all day.
_BOUGHT_FRACTION = 0.45
_RETURNED_FRACTION = 0.02
_MISPLACED_FRACTION = 0.01
# On average, and more than any item must have to tell its story.
_READINGS_PER_ITEM = 10

Times = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StoreParameters:
    """
    The size of the store and of its troubles; the working day lasts twelve hours.

    Each thief carries one item from its shelf through an exit without paying. Some items are
    brought back from a counter to their shelf, one thief in five takes such an item: whoever only
    asks whether an item was ever seen at a counter misses those.
    """

    events: int = 1_000_000
    thieves: int = 25
    shelves: int = 120
    counters: int = 12
    exits: int = 4
    opening: datetime = datetime(2006, 6, 27, 8, tzinfo=UTC)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a store that cannot be."""
        fewest = _READINGS_PER_ITEM
        require(self.events >= fewest, f"`events` must be at least {fewest}, a single item's")
        require(self.seed >= 0, "`seed` must not be negative")
        require(self.shelves >= 2, "`shelves` must be at least 2")
        require(self.counters >= 1 and self.exits >= 1, "`counters` and `exits` start at 1")
        require(self.opening.tzinfo is not None, "`opening` needs a time zone")
        require(
            0 <= self.thieves < self.items,
            f"`thieves` must lie between 0 and {self.items - 1}: {self.events} events are those of "
            f"{self.items} items, and one of them is not stolen",
        )

    @property
    def items(self) -> int:
        """How many items the store holds: ten readings each on average."""
        return self.events // _READINGS_PER_ITEM


@dataclass(frozen=True, slots=True)
class Store:
    """The readings in time order, and what really happened to the items."""

    readings: pa.Table
    stolen: frozenset[str]
    misplaced: frozenset[str]
    # Every shelf reading after the last counter reading of a stolen item gives a match of its own.
    theft_matches: int


def generate_store(parameters: StoreParameters | None = None) -> Store:
    """
    Readings of one day, and the truth about them.

    The stolen items are exactly those found by the paper's shoplifting query (within 12 hours),
    the misplaced ones exactly those found by its misplacement query (within 1 hour).

    >>> store = generate_store(StoreParameters(events=500, thieves=3))
    >>> store.readings.num_rows, len(store.stolen)
    (500, 3)
    """
    parameters = parameters or StoreParameters()
    random = np.random.default_rng([parameters.seed])
    items = _draw_items(random, parameters)
    readings = _in_time_order(_draw_readings(random, parameters, items))
    return Store(
        readings=_table(random, parameters, items, readings),
        stolen=frozenset(_tag(item) for item in np.flatnonzero(items.stolen).tolist()),
        misplaced=frozenset(_tag(item) for item in np.flatnonzero(items.misplaced).tolist()),
        theft_matches=_count_theft_matches(items, readings),
    )


@dataclass(frozen=True, slots=True)
class _Items:
    """One row per item; times in microseconds after opening, meaningful only where flagged."""

    product: npt.NDArray[np.int64]
    bought: Flags
    stolen: Flags
    returned: Flags  # seen at a counter, then back on the shelf
    misplaced: Flags
    placed_at: Times
    returned_at: Times
    misplaced_at: Times
    taken_at: Times  # when it leaves the shelf for good: after that, no more shelf readings


def _draw_items(random: np.random.Generator, parameters: StoreParameters) -> _Items:
    count = parameters.items
    fate = random.random(count)
    bought = fate < _BOUGHT_FRACTION
    stolen = np.zeros(count, dtype=np.bool_)
    thefts = random.choice(count, parameters.thieves, replace=False)
    stolen[thefts] = True
    bought &= ~stolen
    returned = ~stolen & (random.random(count) < _RETURNED_FRACTION)
    returned[thefts[::5]] = True
    misplaced = ~stolen & ~returned & (random.random(count) < _MISPLACED_FRACTION)

    # The latest way through the day: put on the shelf by 11:00, returned or misplaced by 15:00
    # (an hour and a half must pass before a misplaced item may be bought), taken by 19:30.
    placed_at = random.integers(0, 3 * _HOUR, count)
    returned_at = random.integers(4 * _HOUR, 7 * _HOUR, count)
    misplaced_at = random.integers(4 * _HOUR, 7 * _HOUR, count)
    earliest_take = np.where(returned | misplaced, 8 * _HOUR + 30 * _MINUTE, placed_at + _HOUR)
    taken_at = random.integers(earliest_take, 11 * _HOUR + 30 * _MINUTE)
    return _Items(
        product=random.integers(0, len(PRODUCTS), count),
        bought=bought,
        stolen=stolen,
        returned=returned,
        misplaced=misplaced,
        placed_at=placed_at,
        returned_at=returned_at,
        misplaced_at=misplaced_at,
        taken_at=np.where(bought | stolen, taken_at, 12 * _HOUR - _MINUTE),
    )


@dataclass(frozen=True, slots=True)
class _Readings:
    """One row per reading."""

    item: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int8]
    time: Times


def _draw_readings(
    random: np.random.Generator, parameters: StoreParameters, items: _Items
) -> list[_Readings]:
    """Draw what must be seen of each item, then shelf readings until there are enough events."""

    def at(kind: int, flags: Flags, times: Times, least: int, most: int) -> _Readings:
        """One reading of each flagged item, between `least` and `most` after the given time."""
        item = np.flatnonzero(flags)
        time = times[item] + random.integers(least, most, len(item))
        return _Readings(item, np.full(len(item), kind, dtype=np.int8), time)

    count = parameters.items
    everything = np.ones(count, dtype=np.bool_)
    checkout = items.taken_at + 10 * _MINUTE
    readings = [
        at(SHELF, everything, items.placed_at, 0, _SECOND),
        at(COUNTER, items.returned, items.returned_at, 0, _MINUTE),
        at(SHELF, items.returned, items.returned_at, 5 * _MINUTE, 15 * _MINUTE),
        at(SHELF, items.misplaced, items.misplaced_at, -10 * _MINUTE, -_SECOND),
        at(SHELF, items.misplaced, items.misplaced_at, _SECOND, 10 * _MINUTE),
        at(COUNTER, items.bought, checkout, 0, 5 * _MINUTE),
        at(EXIT, items.bought, checkout, 6 * _MINUTE, 12 * _MINUTE),
        at(SHELF, items.stolen, items.taken_at, -3 * _MINUTE, 0),
        at(SHELF, items.stolen & (random.random(count) < 0.5), items.taken_at, -_HOUR, -_MINUTE),
        at(EXIT, items.stolen, items.taken_at, 2 * _MINUTE, 15 * _MINUTE),
    ]
    # Stolen items have few readings, so that each theft is told by a handful of matches.
    honest = np.flatnonzero(~items.stolen)
    missing = parameters.events - sum(len(part.item) for part in readings)
    item = random.choice(honest, missing)
    time = random.integers(items.placed_at[item] + _SECOND, items.taken_at[item])
    readings.append(_Readings(item, np.full(len(item), SHELF, dtype=np.int8), time))
    return readings


def _in_time_order(parts: list[_Readings]) -> _Readings:
    item = np.concatenate([part.item for part in parts])
    kind = np.concatenate([part.kind for part in parts])
    time = np.concatenate([part.time for part in parts])
    order = np.argsort(time, kind="stable")
    # The paper's streams have a total order: a tied reading moves on by a microsecond.
    place = np.arange(len(order))
    time = np.maximum.accumulate(time[order] - place) + place
    return _Readings(item[order], kind[order], time)


def _count_theft_matches(items: _Items, readings: _Readings) -> int:
    stolen = items.stolen[readings.item]
    last_counter = np.full(len(items.stolen), -1, dtype=np.int64)
    at_counter = stolen & (readings.kind == COUNTER)
    last_counter[readings.item[at_counter]] = readings.time[at_counter]
    after = readings.time > last_counter[readings.item]
    return int(np.count_nonzero(stolen & (readings.kind == SHELF) & after))


def _tag(item: int) -> str:
    return f"tag-{item:06d}"


def _table(
    random: np.random.Generator,
    parameters: StoreParameters,
    items: _Items,
    readings: _Readings,
) -> pa.Table:
    # Each product has its shelf; each item of it comes from one of a few manufacturers.
    home_of_product = random.integers(0, parameters.shelves, len(PRODUCTS))
    manufacturer = random.integers(1, 41, len(items.product))
    item = readings.item
    on_shelf = readings.kind == SHELF
    home = home_of_product[items.product[item]]
    astray = items.misplaced[item] & (readings.time >= items.misplaced_at[item])
    # Another shelf, the same one for every later reading of the item.
    step = random.integers(1, parameters.shelves, len(items.product))
    shelf = np.where(astray, (home + step[item]) % parameters.shelves, home)

    shelf_names = [f"shelf-{number:03d}" for number in range(1, parameters.shelves + 1)]
    counter_names = [f"counter-{number:02d}" for number in range(1, parameters.counters + 1)]
    exit_names = [f"exit-{number}" for number in range(1, parameters.exits + 1)]
    counter = random.integers(0, parameters.counters, len(item)) + parameters.shelves
    door = random.integers(0, parameters.exits, len(item)) + parameters.shelves
    reader = np.select(
        [on_shelf, readings.kind == COUNTER], [shelf, counter], door + parameters.counters
    )
    opening = int(parameters.opening.timestamp()) * _SECOND
    product = items.product[item]
    columns = {
        "type": _dictionary(readings.kind, READING_TYPES, pa.int8()),
        "ts": pa.array(opening + readings.time).cast(pa.timestamp("us", "UTC")),
        "id": _dictionary(item, [_tag(i) for i in range(len(items.product))]).cast(pa.string()),
        "shelf_id": _dictionary(shelf, shelf_names, absent=~on_shelf),
        "reader": _dictionary(reader, [*shelf_names, *counter_names, *exit_names]),
        "product": _dictionary(product, [name for name, _, _ in PRODUCTS]),
        "category": _dictionary(product, [category for _, category, _ in PRODUCTS]),
        "price": pa.array(np.array([price for _, _, price in PRODUCTS])[product]),
        "manufacturer_id": _dictionary(manufacturer[item] - 1, [str(i) for i in range(1, 41)]),
    }
    return pa.table(columns)


def _dictionary(
    codes: npt.NDArray[np.signedinteger],
    values: tuple[str, ...] | list[str],
    code_type: pa.DataType | None = None,
    absent: Flags | None = None,
) -> pa.DictionaryArray[Any, Any]:
    indices: pa.Array[Any] = pa.array(codes, code_type or pa.int32(), mask=absent, safe=False)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))
