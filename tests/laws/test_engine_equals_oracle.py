"""The compiled engine gives the oracle's answer on random queries, however streams are fed.

150 query shapes times 120 streams, each fed whole, and every other one in random cuts with snapshot
and restore between them, or in disorder within the allowed lateness. CEPHEID_VOLUME=3 makes it 3
times as many shapes. A difference names its seed and stream.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

import cepheid
from tests.laws.engine_runs import in_cuts, in_disorder, oracle_answer, whole
from tests.laws.random_queries import random_case, random_rows

SHAPES = 150 * int(os.environ.get("CEPHEID_VOLUME", "1"))
STREAMS = 120
SHAPES_PER_TEST = 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SHAPES, SHAPES_PER_TEST))
def test_engine_equals_oracle(first: int) -> None:
    compared = 0
    for seed in range(first, first + SHAPES_PER_TEST):
        case = random_case(seed)
        query = cepheid.compile(case.text)
        for stream in range(STREAMS):
            rows = random_rows(seed * 1000 + stream)
            expected = oracle_answer(case, rows)
            compared += expected.total()
            answers = {"whole": whole(query, case, rows)}
            if stream % 2:
                answers["in cuts"] = in_cuts(query, case, rows, stream)
            else:
                answers["in disorder"] = in_disorder(query, case, rows, stream)
            for how, found in answers.items():
                assert found == expected, (
                    f"{case} stream {stream} {how}: missing {expected - found}, "
                    f"extra {found - expected}"
                )
    # Shapes of which none ever matches would prove nothing.
    assert compared > 0


def test_generator_is_rich_enough() -> None:
    """The shapes cover what the language has: an empty comparison cannot pass for one."""
    cases = [random_case(seed) for seed in range(SHAPES)]
    seen = Counter(
        word
        for case in cases
        for word in ("!", "ANY", "[k", "[s]", "lower", "OR", "WITHIN", "/")
        if word in case.text
    )
    seen.update(option for case in cases for option in case.options)
    assert min(seen.values()) >= 5
    assert {"!", "ANY", "[k", "OR", "WITHIN", "tie", "discrete", "types"} <= set(seen)
    assert len({case.text for case in cases}) > 0.95 * SHAPES
