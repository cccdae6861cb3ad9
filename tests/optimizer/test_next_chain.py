"""What may be bracketed anew means the same in all brackets; what may not stays as it is."""

from __future__ import annotations

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Next, Pattern, walk
from cepheid.algebra.text import from_text, to_text
from cepheid.optimizer.next_chain import Chain, chain_of
from cepheid.optimizer.next_search import Tree
from tests.optimizer.comparing import careless_history, found, meaning
from tests.optimizer.next_patterns import all_brackets, inner_stretches, random_chain
from tests.oracle.histories import history

CHAINS = 1000
HISTORIES = 3

A, B, C, D, N = (f"Atom([{type}], {type.lower()})" for type in "ABCDN")
Y = "Atom([C], c)"
LONGER = f"Union(Next({Y}, {D}), Atom([D], e))"


def root_of(pattern: Pattern) -> Next:
    return next(node for node in walk(pattern) if isinstance(node, Next))


def allowed(chain: Chain) -> list[Tree]:
    return [
        tree
        for tree in all_brackets(0, len(chain.operands) - 1)
        if all(chain.allows(*stretch) for stretch in inner_stretches(tree))
    ]


def test_every_bracketing_that_is_allowed_has_the_same_matches() -> None:
    kinds = {"keys": 0, "skips": 0, "tests": 0, "windows": 0}
    histories, matches, nonempty = 0, 0, 0
    for seed in range(CHAINS):
        root = root_of(random_chain(seed))
        chain = chain_of(root)
        if chain is None:
            continue
        trees = allowed(chain)
        assert chain.written in trees
        others = [chain.bracketed(tree) for tree in trees]
        for other in others:
            check(other, closed=True)
        for name in kinds:
            kinds[name] += bool(getattr(chain, name))
        for number in range(seed * HISTORIES, (seed + 1) * HISTORIES):
            events = careless_history(number)
            right = meaning(root, events)
            for other in others:
                assert meaning(other, events) == right, (seed, number, to_text(other))
            histories, matches = histories + 1, matches + found(right)
            nonempty += found(right) > 0
    assert histories > 2000
    assert nonempty > 150, matches
    assert min(kinds.values()) > 30, kinds


def test_a_chain_keeps_its_conditions_and_the_order_of_its_variables() -> None:
    written = from_text(
        f"Next(Next({A}, {B}, skip=a.k = b.k, test=a.v < b.v), Next({C}, {D}, skip=c.k = d.k), "
        "skip=b.k = d.k and a.v < c.v, test=b.v < d.v)"
    )
    chain = chain_of(written)
    assert chain is not None
    assert [to_text(operand) for operand in chain.operands] == [
        to_text(from_text(each)) for each in (A, B, C, D)
    ]
    assert chain.written == ((0, 1), (2, 3))
    # `a.v < c.v` chooses C for what stands before it, so C begins a bracket after A and B.
    assert set(map(str, allowed(chain))) == {"((0, 1), (2, 3))", "(((0, 1), 2), 3)"}
    assert to_text(chain.bracketed((((0, 1), 2), 3))) == to_text(
        from_text(
            f"Next(Next(Next({A}, {B}, skip=a.k = b.k, test=a.v < b.v), {C}, "
            f"skip=b.k = c.k and a.v < c.v), {D}, skip=c.k = d.k, test=b.v < d.v)"
        )
    )


NO_CHAIN = {
    "two operands": f"Next({A}, {B})",
    "a test inside a bracket that does not begin the chain": f"Next({A}, Next({B}, {C}, "
    "test=b.v < c.v))",
    "a skip there": f"Next({A}, Next({B}, {C}, skip=b.v < c.v))",
    "a skip that looks behind the operand it chooses": f"Next({A}, Next({B}, {C}), skip=a.v < c.v)",
    "one key for some": f"Next({A}, Next({B}, {C}, skip=b.k = c.k))",
    "third operands of different lengths": f"Next(Next({A}, {B}), {LONGER})",
    "an iteration as third operand": f"Next(Next({A}, {B}), Plus({C}))",
    "conditions that fail on missing attributes": f"Next(Next({A}, {B}, test=a.v < b.v, "
    f"absent=error), {C})",
    "two absent rules": f"Next(Next({A}, {B}, test=a.v < b.v, absent=true), {C}, test=c.v > 0)",
    "a window over the match of a part": f"Next(Within(Next({A}, {B}), window=3, "
    f"inclusive=true), {C})",
    "an exception in a part": f"Next({A}, Except(Next({B}, {C}), {N}, since=b))",
}


@pytest.mark.parametrize("why", NO_CHAIN)
def test_what_keeps_its_brackets(why: str) -> None:
    node = from_text(NO_CHAIN[why])
    check(node, closed=True)
    assert chain_of(node) is None


def test_a_key_of_two_attributes() -> None:
    a, b, c = (
        f"Atom([{types}], {types[0].lower()})" for types in ("A, D, N", "B, D, N", "C, D, N")
    )
    left = from_text(
        f"Next(Next({a}, {b}, skip=a.k = b.k and a.v = b.v), {c}, skip=c.k = a.k and b.v = c.v)"
    )
    chain = chain_of(left)
    assert chain is not None
    assert len(chain.keys) == 2
    right = chain.bracketed((0, (1, 2)))
    assert to_text(right) == to_text(
        from_text(
            f"Next({a}, Next({b}, {c}, skip=b.k = c.k and b.v = c.v), skip=a.k = b.k and a.v = b.v)"
        )
    )
    seen = 0
    for seed in range(2000):
        events = careless_history(seed)
        assert meaning(left, events) == meaning(right, events), seed
        seen += found(meaning(left, events))
    assert seen > 20


def test_lengths_matter_for_the_third_operand_only() -> None:
    assert chain_of(from_text(f"Next(Next({LONGER}, {A}), {B})")) is not None
    assert chain_of(from_text(f"Next(Next({A}, {LONGER}), {B})")) is not None


def test_candidates_of_two_lengths_are_told_apart_by_their_predecessor() -> None:
    """Not in the paper, which calls Next associative without condition."""
    events = history("A1@0 B1@1 C1@[2,4] B2@3 D1@6")
    left = from_text(f"Next(Next({A}, {B}), {LONGER})")
    right = from_text(f"Next({A}, Next({B}, {LONGER}))")
    assert [match.ids for match in meaning(left, events)] == [("A1", "B1", "C1", "D1")]
    assert [match.ids for match in meaning(right, events)] == [("A1", "B2", "D1")]


def test_a_skip_of_the_first_pair_is_free() -> None:
    chain = chain_of(from_text(f"Next(Next({A}, {B}, skip=a.v < b.v), {C})"))
    assert chain is not None
    assert len(allowed(chain)) == 2


def test_a_skip_of_a_later_operand_holds_what_is_before_it_together() -> None:
    chain = chain_of(from_text(f"Next(Next(Next({A}, {B}), {C}, skip=a.v < c.v), {D})"))
    assert chain is not None
    assert set(map(str, allowed(chain))) == {"(((0, 1), 2), 3)", "((0, 1), (2, 3))"}
