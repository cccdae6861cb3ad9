"""Pill bottles read by RFID: who took how much of what, with some overdoses (SASE paper, 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from cepheid.generate.parameters import require

# name, milligrams per dose, hours between doses: two doses never exceed 1000 mg within 4 hours
MEDICINES = (("Antibiotics", 500, 8), ("Painkiller", 400, 6), ("Vitamin C", 250, 12))
PATIENTS = ("John", "Mary", "Ahmed", "Ingrid", "Chen", "Fatima", "Pedro", "Yuki")

_MINUTE = 60 * 1_000_000
_HOUR = 60 * _MINUTE
OVERDOSE_MILLIGRAMS = 1000


@dataclass(frozen=True, slots=True)
class MedicineParameters:
    """How many patients over how many days, and how many of them take a second dose too soon."""

    patients: int = 8
    days: int = 3
    overdoses: int = 4
    beginning: datetime = datetime(2006, 6, 27, tzinfo=UTC)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that do not go together."""
        require(self.patients >= 1, "`patients` must be at least 1")
        require(self.days >= 1, "`days` must be at least 1")
        require(self.seed >= 0, "`seed` must not be negative")
        require(self.beginning.tzinfo is not None, "`beginning` needs a time zone")
        require(
            0 <= self.overdoses <= self.patients,
            f"`overdoses` must lie between 0 and the number of patients, {self.patients}",
        )


@dataclass(frozen=True, slots=True)
class MedicineRecord:
    """The readings in time order, and the patients who took too much of which medicine."""

    readings: pa.Table
    overdosed: frozenset[tuple[str, str]]


def generate_medicine(parameters: MedicineParameters | None = None) -> MedicineRecord:
    """
    Doses taken by schedule, and second doses of more than 1000 mg together within 4 hours.

    The first patient is John, as in the paper's query; he overdoses on antibiotics whenever
    anyone overdoses at all.

    >>> record = generate_medicine(MedicineParameters(overdoses=1))
    >>> sorted(record.overdosed)
    [('John', 'Antibiotics')]
    """
    parameters = parameters or MedicineParameters()
    random = np.random.default_rng([parameters.seed])
    rows: list[tuple[int, str, str, int]] = []
    overdosed = set()
    for number in range(parameters.patients):
        name = PATIENTS[number] if number < len(PATIENTS) else f"patient {number + 1}"
        medicine, milligrams, hours = MEDICINES[number % len(MEDICINES)]
        # Up to half an hour late: doses stay more than 4 hours apart.
        due = np.arange(7 * _HOUR, parameters.days * 24 * _HOUR, hours * _HOUR)
        taken = due + random.integers(0, 30 * _MINUTE, len(due))
        rows += [(time, name, medicine, milligrams) for time in taken.tolist()]
        if number < parameters.overdoses:
            first = int(random.choice(taken))
            again = first + int(random.integers(30 * _MINUTE, 3 * _HOUR))
            too_much = OVERDOSE_MILLIGRAMS - milligrams + 50 * int(random.integers(1, 6))
            rows.append((again, name, medicine, too_much))
            overdosed.add((name, medicine))
    rows.sort()
    beginning = int(parameters.beginning.timestamp()) * 1_000_000
    times, names, medicines, amounts = zip(*rows, strict=True)
    readings = pa.table(
        {
            "type": pa.array(["MEDICINE-TAKEN"] * len(rows)).dictionary_encode(),
            "ts": pa.array([beginning + time for time in times]).cast(pa.timestamp("us", "UTC")),
            "name": pa.array(names, pa.string()),
            "medicine": pa.array(medicines, pa.string()),
            "amount": pa.array(amounts, pa.int64()),
        }
    )
    return MedicineRecord(readings, frozenset(overdosed))
