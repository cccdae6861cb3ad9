"""The optimiser: all rewrites in order, applied until nothing changes.

A rewrite may not change the set of matches on any history, nor the order of a match's variables
(docs/semantics.md#identity-of-matches). Rules of one kind are always done. Those of another change
the shape of a pattern and may make it dearer: they are done where rates are given and say that it
costs less. What the algebra does not show, such as a kernel or a key, is the planner's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cepheid.algebra.pattern import Pattern, failing
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError
from cepheid.optimizer.choice import Choice
from cepheid.optimizer.choosing import Chooser
from cepheid.optimizer.next_search import Search
from cepheid.optimizer.rewriting import CostedRule, Rewriter, Rule, Step
from cepheid.optimizer.rules.bound_next_by_window import bound_next_by_window
from cepheid.optimizer.rules.distribute_next_over_union import distribute_next_over_union
from cepheid.optimizer.rules.distribute_seq_over_union import distribute_seq_over_union
from cepheid.optimizer.rules.drop_idle_exception import drop_idle_exception
from cepheid.optimizer.rules.drop_repeated_dedup import drop_repeated_dedup
from cepheid.optimizer.rules.drop_single_union import drop_single_union
from cepheid.optimizer.rules.drop_true_filter import drop_true_filter
from cepheid.optimizer.rules.flatten_seq import flatten_seq
from cepheid.optimizer.rules.flatten_union import flatten_union
from cepheid.optimizer.rules.merge_filter_into_next import merge_filter_into_next
from cepheid.optimizer.rules.merge_filters import merge_filters
from cepheid.optimizer.rules.merge_withins import merge_withins
from cepheid.optimizer.rules.order_guards import order_guards
from cepheid.optimizer.rules.push_filter_into_atoms import push_filter_into_atoms
from cepheid.optimizer.rules.push_filter_through_guard import push_filter_through_guard
from cepheid.optimizer.rules.push_guard_test_into_negated_atom import (
    push_guard_test_into_negated_atom,
)
from cepheid.optimizer.rules.push_next_condition_into_first import push_next_condition_into_first
from cepheid.optimizer.rules.push_next_skip_into_second import push_next_skip_into_second
from cepheid.optimizer.rules.push_window_below_filter import push_window_below_filter
from cepheid.optimizer.rules.push_window_below_guard import push_window_below_guard
from cepheid.optimizer.rules.push_window_below_next import push_window_below_next
from cepheid.optimizer.rules.reassociate_next import reassociate_next
from cepheid.statistics.next_costs import NextCosts

RULES: tuple[Rule, ...] = (
    # What only wraps goes first, so that the other rules see the operands themselves.
    flatten_union,
    drop_single_union,
    flatten_seq,
    drop_repeated_dedup,
    drop_idle_exception,
    # Then each kind of test sinks to its level: windows lowest, filters above them, guards on top,
    # since a guard is the dearest test and should see the fewest matches. Windows before filters,
    # because a filter above a window stays there.
    push_window_below_guard,
    push_window_below_filter,
    push_window_below_next,
    push_filter_through_guard,
    # Tests that have met on their level become one.
    merge_withins,
    merge_filters,
    # A filter over a Next is one of its tests; its conditions on one side then go there.
    merge_filter_into_next,
    push_next_skip_into_second,
    push_next_condition_into_first,
    # A merged filter is split by variable once; what is left of it may be nothing.
    push_filter_into_atoms,
    push_guard_test_into_negated_atom,
    drop_true_filter,
    # Guards are ordered last, when no filter or window stands between them any more.
    order_guards,
    # Windows for the parts of a chain come when its brackets are final: see AFTER_SHAPES.
    bound_next_by_window,
)

SHAPES: tuple[CostedRule, ...] = (
    # First into alternatives, which looks ahead to the brackets of each; then the brackets.
    distribute_next_over_union,
    reassociate_next,
)

AFTER_SHAPES: tuple[Rule, ...] = (
    # A window on a part of a chain holds its brackets in place.
    bound_next_by_window,
)

ON_DEMAND: tuple[Rule, ...] = (
    # Multiplies the pattern; for planners that have no kernel for alternatives.
    distribute_seq_over_union,
    distribute_next_over_union,
)


class Optimised(NamedTuple):
    """The cheaper pattern, and the steps that led to it: rule, node before, node after."""

    pattern: Pattern
    trace: tuple[Step, ...]


def optimise(
    pattern: Pattern,
    *,
    rules: Sequence[Rule] = RULES,
    off: Collection[str] = (),
    check: bool = False,
    costs: NextCosts | None = None,
    search: Search = "pareto",
) -> Optimised:
    """A pattern with the same matches that is cheaper to run.

    `off` names rules to leave out; `check` holds every step to the algebra's invariants. `costs`
    are the rates by which shapes are chosen; without them each pattern keeps its shape. `search`
    tells how: "pareto" finds the cheapest brackets of a chain, "paper" is NEXT's own search.

    >>> from cepheid.algebra.text import from_text, to_text
    >>> found = optimise(from_text("Filter(Seq(Atom([A], x), Atom([B], y)), x.v > 1)"))
    >>> to_text(found.pattern)
    'Seq(Atom([A], x, x.v > 1), Atom([B], y))'
    >>> [step.rule for step in found.trace]
    ['push_filter_into_atoms', 'drop_true_filter']

    >>> chain = from_text("Next(Atom([A], x), Next(Atom([B], y), Atom([C], z)))")
    >>> found = optimise(chain, costs=NextCosts({"A": 1, "B": 50, "C": 80}))
    >>> to_text(found.pattern)
    'Next(Next(Atom([A], x), Atom([B], y)), Atom([C], z))'
    """
    _refuse_unknown(off)
    if any(each is not pattern for each in failing(pattern)):
        # Rules keep matches, not what fails inside of a pattern and is handed on.
        return Optimised(pattern, ())
    wanted = [rule for rule in rules if rule.__name__ not in off]
    rewriter = Rewriter(wanted, is_checking=check)
    if costs is None:
        return Optimised(rewriter.rewrite(pattern), tuple(rewriter.steps))
    before = Rewriter([rule for rule in wanted if rule not in AFTER_SHAPES], is_checking=check)
    shapes = [rule for rule in SHAPES if rule.__name__ not in off]
    chooser = Chooser(shapes, Choice(costs, search), is_checking=check)
    chosen = chooser.choose(before.rewrite(pattern))
    found = rewriter.rewrite(chosen)
    return Optimised(found, (*before.steps, *chooser.steps, *rewriter.steps))


def _refuse_unknown(names: Collection[str]) -> None:
    known = list(dict.fromkeys(rule.__name__ for rule in (*RULES, *SHAPES, *ON_DEMAND)))
    for name in names:
        if name not in known:
            raise OptionError.of(
                "unknown-rule",
                f"the optimiser has no rule `{name}`",
                help=did_you_mean(name, known) or f"rules: {', '.join(known)}",
            )
