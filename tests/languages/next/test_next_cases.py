"""The cases of tests/cases/next.yaml by the definitions, and that every trap of SPEC has one."""

from __future__ import annotations

import pytest

from cepheid.testing import match_difference
from tests.cases.by_definition import oracle_rows
from tests.cases.loading import NAME, Case, load_cases

CASES = load_cases("next")


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["rows", "table"])
def test_by_definition(case: Case, wide: bool) -> None:
    expected = case.wide if wide else case.matches
    difference = match_difference(expected, oracle_rows(case, wide=wide), NAME)
    assert not difference, f"the matches differ\n{difference}"


@pytest.mark.parametrize("number", [*range(16, 27), 37, 43])
def test_every_trap_has_a_case(number: int) -> None:
    assert any(f"SPEC D{number}" in case.origin for case in CASES)
