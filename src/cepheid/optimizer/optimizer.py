"""The optimiser: all rewrites in order, applied until nothing changes.

A rewrite may not change the set of matches on any history, nor the order of a match's variables
(docs/semantics.md#identity-of-matches). What is a matter of cost, such as the choice of a kernel or
of a key, is the planner's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cepheid.algebra.pattern import Pattern
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError
from cepheid.optimizer.rewriting import Rewriter, Rule, Step
from cepheid.optimizer.rules.distribute_seq_over_union import distribute_seq_over_union
from cepheid.optimizer.rules.drop_repeated_dedup import drop_repeated_dedup
from cepheid.optimizer.rules.drop_single_union import drop_single_union
from cepheid.optimizer.rules.drop_true_filter import drop_true_filter
from cepheid.optimizer.rules.flatten_seq import flatten_seq
from cepheid.optimizer.rules.flatten_union import flatten_union
from cepheid.optimizer.rules.merge_filters import merge_filters
from cepheid.optimizer.rules.merge_withins import merge_withins
from cepheid.optimizer.rules.order_guards import order_guards
from cepheid.optimizer.rules.push_filter_into_atoms import push_filter_into_atoms
from cepheid.optimizer.rules.push_filter_through_guard import push_filter_through_guard
from cepheid.optimizer.rules.push_guard_test_into_negated_atom import (
    push_guard_test_into_negated_atom,
)
from cepheid.optimizer.rules.push_window_below_filter import push_window_below_filter
from cepheid.optimizer.rules.push_window_below_guard import push_window_below_guard

RULES: tuple[Rule, ...] = (
    # What only wraps goes first, so that the other rules see the operands themselves.
    flatten_union,
    drop_single_union,
    flatten_seq,
    drop_repeated_dedup,
    # Then each kind of test sinks to its level: windows lowest, filters above them, guards on top,
    # since a guard is the dearest test and should see the fewest matches. Windows before filters,
    # because a filter above a window stays there.
    push_window_below_guard,
    push_window_below_filter,
    push_filter_through_guard,
    # Tests that have met on their level become one.
    merge_withins,
    merge_filters,
    # A merged filter is split by variable once; what is left of it may be nothing.
    push_filter_into_atoms,
    push_guard_test_into_negated_atom,
    drop_true_filter,
    # Guards are ordered last, when no filter or window stands between them any more.
    order_guards,
)

ON_DEMAND: tuple[Rule, ...] = (
    # Multiplies the pattern; for planners that have no kernel for alternatives.
    distribute_seq_over_union,
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
) -> Optimised:
    """A pattern with the same matches that is cheaper to run.

    `off` names rules to leave out; `check` holds every step to the algebra's invariants.

    >>> from cepheid.algebra.text import from_text, to_text
    >>> found = optimise(from_text("Filter(Seq(Atom([A], x), Atom([B], y)), x.v > 1)"))
    >>> to_text(found.pattern)
    'Seq(Atom([A], x, x.v > 1), Atom([B], y))'
    >>> [step.rule for step in found.trace]
    ['push_filter_into_atoms', 'drop_true_filter']
    """
    _refuse_unknown(off)
    rewriter = Rewriter([rule for rule in rules if rule.__name__ not in off], is_checking=check)
    found = rewriter.rewrite(pattern)
    return Optimised(found, tuple(rewriter.steps))


def _refuse_unknown(names: Collection[str]) -> None:
    known = [rule.__name__ for rule in (*RULES, *ON_DEMAND)]
    for name in names:
        if name not in known:
            raise OptionError.of(
                "unknown-rule",
                f"the optimiser has no rule `{name}`",
                help=did_you_mean(name, known) or f"rules: {', '.join(known)}",
            )
