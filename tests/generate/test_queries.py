"""The query generator: what Table 2 asks for is what the texts hold."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from cepheid.generate import QueryParameters, StreamParameters, generate_queries
from cepheid.generate.zipf import zipf_probabilities
from cepheid.model.errors import OptionError

STREAM = StreamParameters(domain_sizes=(100, 20, 50, 50, 50))


def components(query: str) -> list[str]:
    inside = re.match(r"EVENT SEQ\((.*)\)$", query.splitlines()[0])
    assert inside, query
    return inside.group(1).split(", ")


def where(query: str) -> list[str]:
    for line in query.splitlines():
        if line.startswith("WHERE "):
            return line.removeprefix("WHERE ").split(" AND ")
    return []


def test_seed_decides_the_queries_and_more_of_them_begin_alike():
    three = generate_queries(QueryParameters(queries=3, seed=4), STREAM)
    five = generate_queries(QueryParameters(queries=5, seed=4), STREAM)
    assert five[:3] == three
    assert three != generate_queries(QueryParameters(queries=3, seed=5), STREAM)
    assert len(set(five)) == 5


def test_text_of_the_plainest_query():
    (query,) = generate_queries(QueryParameters(length=2, window=500), STREAM)
    assert re.fullmatch(r"EVENT SEQ\(E\d+ x1, E\d+ x2\)\nWHERE \[attr1\]\nWITHIN 500", query)


@pytest.mark.parametrize("length", [2, 4, 6])
@pytest.mark.parametrize("negations", [0, 1, 2])
def test_length_and_negations(length, negations):
    wanted = QueryParameters(queries=20, length=length, negations=negations)
    for query in generate_queries(wanted, STREAM):
        parts = components(query)
        positive = [part for part in parts if not part.startswith("!")]
        negative = [part for part in parts if part.startswith("!")]
        assert [part.split()[1] for part in positive] == [f"x{i + 1}" for i in range(length)]
        assert len(negative) == negations
        assert all(re.fullmatch(r"!\(E\d+ n\d\)", part) for part in negative)
        assert not parts[0].startswith("!")
        assert not parts[-1].startswith("!")
        types = re.findall(r"E\d+", " ".join(parts))
        assert len(set(types)) == length + negations


def test_negated_ends_appear_when_allowed():
    wanted = QueryParameters(queries=60, length=2, negations=1, negated_ends=True)
    places = {
        next(i for i, part in enumerate(components(query)) if part.startswith("!"))
        for query in generate_queries(wanted, STREAM)
    }
    assert places == {0, 1, 2}


def test_predicates_have_attributes_of_their_own():
    wanted = QueryParameters(
        queries=50, length=3, equivalence_tests=2, inequality_predicates=1, simple_predicates=2
    )
    for query in generate_queries(wanted, STREAM):
        equivalence, *rest = where(query)
        assert equivalence == "[attr1, attr2]"
        simple = [p for p in rest if re.fullmatch(r"x\d\.attr[35] [=<>] \d+", p)]
        inequality = [p for p in rest if re.fullmatch(r"x\d\.attr4 [<>] x\d\.attr4", p)]
        assert (len(simple), len(inequality), len(rest)) == (2, 1, 3)


def test_simple_predicates_can_hold():
    wanted = QueryParameters(queries=300, length=1, simple_predicates=1)
    narrow = StreamParameters(domain_sizes=2)
    seen = {
        re.sub(r".*attr\d ", "", where(query)[-1]) for query in generate_queries(wanted, narrow)
    }
    assert seen == {"= 1", "= 2", "< 2", "> 1"}


def test_inequalities_over_one_attribute_agree():
    wanted = QueryParameters(queries=30, length=4, equivalence_tests=4, inequality_predicates=6)
    for query in generate_queries(wanted, STREAM):
        operators = {re.search(r" ([<>]) ", p).group(1) for p in where(query)[1:]}
        assert len(operators) == 1


def test_types_follow_their_zipf():
    wanted = QueryParameters(queries=2000, length=1, type_theta=1.0, equivalence_tests=0)
    first = Counter(components(query)[0].split()[0] for query in generate_queries(wanted, STREAM))
    assert abs(first["E1"] / 2000 - zipf_probabilities(20, 1.0)[0]) < 0.04


def test_repeated_types_only_when_allowed():
    few = StreamParameters(types=2)
    wanted = QueryParameters(queries=10, length=3, repeated_types=True)
    assert len(generate_queries(wanted, few)) == 10
    with pytest.raises(OptionError, match="2 types"):
        generate_queries(QueryParameters(length=3), few)


def test_no_window_no_within():
    (query,) = generate_queries(QueryParameters(window=None), STREAM)
    assert "WITHIN" not in query


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 0},
        {"negations": -1},
        {"window": 0},
        {"length": 1, "negations": 1},
        {"negations": 1, "negated_ends": True, "window": None},
    ],
)
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(OptionError):
        QueryParameters(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"equivalence_tests": 6},
        {"equivalence_tests": 5, "simple_predicates": 1},
        {"equivalence_tests": 4, "simple_predicates": 1, "inequality_predicates": 1},
        {"length": 2, "simple_predicates": 9, "equivalence_tests": 1},
    ],
)
def test_predicates_that_do_not_fit_the_stream_are_refused(wrong):
    with pytest.raises(OptionError, match="attributes"):
        generate_queries(QueryParameters(**wrong), STREAM)
