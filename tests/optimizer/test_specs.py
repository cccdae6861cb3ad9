"""Every rule does what its specification says, and no more; what it does keeps the meaning."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Except, Next, walk
from cepheid.algebra.text import to_text
from cepheid.optimizer import rules as rules_package
from cepheid.optimizer.optimizer import ON_DEMAND, RULES, SHAPES, Optimised, optimise
from cepheid.statistics.next_costs import NextCosts
from tests.optimizer.comparing import FAILED, careless_history, found, meaning
from tests.optimizer.spec_files import Spec, load_specs

HISTORIES = 150
HISTORIES_OF_SUCCESSORS = 2000
"""Chains of successors are rarely complete, and two differ by a tie or a long event only."""
MORE_HISTORIES = 1500
"""For a wrong rewrite whose counterexample is rare; the search ends with the first one."""

EVERY_RULE: dict[str, Any] = {rule.__name__: rule for rule in (*RULES, *ON_DEMAND, *SHAPES)}
SPECS = load_specs()
FIRING = [spec for spec in SPECS if spec.fires]
STAYING = [spec for spec in SPECS if not spec.fires]
TEMPTING = [spec for spec in STAYING if spec.after is not None]


def is_open(spec: Spec) -> bool:
    return ":w" in to_text(spec.before)


def apply(spec: Spec) -> Optimised:
    """What a case's rule alone makes of it: by cost where the case gives rates."""
    if not spec.rates:
        return optimise(spec.before, rules=[EVERY_RULE[spec.rule]], check=True)
    others = [rule.__name__ for rule in SHAPES if rule.__name__ != spec.rule]
    return optimise(spec.before, rules=[], off=others, check=True, costs=NextCosts(spec.rates))


@pytest.mark.parametrize("spec", FIRING, ids=str)
def test_fires(spec: Spec) -> None:
    check(spec.before, closed=True)
    done = apply(spec)
    assert to_text(done.pattern) == to_text(spec.after)  # type: ignore[arg-type]
    assert {step.rule for step in done.trace} == {spec.rule}


@pytest.mark.parametrize("spec", STAYING, ids=str)
def test_does_not_fire(spec: Spec) -> None:
    check(spec.before, closed=not is_open(spec))
    done = apply(spec)
    assert to_text(done.pattern) == to_text(spec.before)
    assert done.trace == ()


@pytest.mark.parametrize("spec", FIRING, ids=str)
def test_keeps_the_meaning(spec: Spec) -> None:
    assert spec.after is not None
    seen = 0
    chooses = any(isinstance(node, Next | Except) for node in walk(spec.before))
    for seed in range(HISTORIES_OF_SUCCESSORS if chooses else HISTORIES):
        history = careless_history(seed)
        before = meaning(spec.before, history)
        assert before == meaning(spec.after, history), seed
        seen += found(before)
    assert seen > 0, "no history had a match: the rewrite was not put to the test"


@pytest.mark.parametrize("spec", TEMPTING, ids=str)
def test_the_tempting_rewrite_is_wrong(spec: Spec) -> None:
    assert spec.after is not None
    check(spec.after, closed=True)
    for seed in range(MORE_HISTORIES):
        history = careless_history(seed)
        if meaning(spec.before, history) != meaning(spec.after, history):
            return
    pytest.fail("no history tells them apart: the rule could do it")


@pytest.mark.parametrize("name", EVERY_RULE)
def test_every_rule_is_specified(name: str) -> None:
    assert any(spec.rule == name for spec in FIRING)
    assert any(spec.rule == name for spec in TEMPTING), "show a case where it would be wrong"


def test_every_specification_has_its_rule() -> None:
    assert {spec.rule for spec in SPECS} == EVERY_RULE.keys()


def test_a_rule_is_named_after_its_file_and_says_why_it_is_sound() -> None:
    folder = Path(rules_package.__file__ or "").parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == EVERY_RULE.keys()
    for name in modules:
        rule = getattr(importlib.import_module(f"cepheid.optimizer.rules.{name}"), name)
        assert rule is EVERY_RULE[name]
        text = rule.__doc__ or ""
        assert " ->  " in text, name
        assert "Sound because" in text, name
        assert "would not be" in " ".join(text.split()), name


def test_the_oracle_tells_failing_patterns_apart() -> None:
    failing = next(spec for spec in TEMPTING if "would be asked" in spec.title)
    answers = [meaning(failing.before, careless_history(seed)) for seed in range(HISTORIES)]
    assert FAILED in answers
    assert any(answer != FAILED for answer in answers)
