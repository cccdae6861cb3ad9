"""An exception that no event can raise is none."""

from __future__ import annotations

from cepheid.algebra.expression import Absent
from cepheid.algebra.node_expressions import node_expressions
from cepheid.algebra.pattern import Except, Pattern, Timer, walk
from cepheid.optimizer.ends import is_in_order, last_event


def drop_idle_exception(node: Pattern) -> Pattern | None:
    """
    Except(A, N, since=a)           ->  A
    Except(Next(A, B), N, since=b)  ->  Next(A, B)

    Sound because a witness starts after the end of `since`, which here is the end of the match, and
    must still come before that end. It would not be for an earlier `since`: `A ; (B \\ N)` waits
    for B from the end of a on, so its exception is Except(Next(A, B), N, since=a). Nor behind a
    Timer, which moves the end of the match away from its last event; nor for an N that fails on
    missing attributes.
    """
    match node:
        case Except(pattern, negated, since) if since == last_event(pattern):
            return pattern if is_in_order(negated) and _is_quiet(negated) else None
        case _:
            return None


def _is_quiet(node: Pattern) -> bool:
    return not any(
        isinstance(each, Timer)
        or (getattr(each, "absent", None) is Absent.ERROR and any(node_expressions(each)))
        for each in walk(node)
    )
