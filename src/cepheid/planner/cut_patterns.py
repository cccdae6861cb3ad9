"""Where a pattern of successors may be cut, so that a part of it runs elsewhere.

A part is named by its canonical text: whoever has a pattern with that text finds the same
composites, and calls their variables by the same numbers. Conditions of an operator read nothing
but what lies below it, so everything above a part needs no more of it than its composites.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cepheid.algebra.pattern import Atom, Except, Pattern, Timer, operands, walk
from cepheid.planner.canonical_succession import CanonicalForms
from cepheid.planner.succession_layout import ALONE, Above, operands_below


def may_be_cut(part: Pattern) -> bool:
    """Whether the composites of a part can be told by their events alone.

    A single event is no composite, and an instant that a timer adds is no event.
    """
    return not isinstance(part, Atom) and not any(isinstance(node, Timer) for node in walk(part))


def texts_kept(pattern: Pattern, forms: CanonicalForms) -> Iterator[str]:
    """The parts of a pattern that must run where the pattern does.

    Exceptions are remembered for as long as a partial match waits that they may cancel. Where such
    matches wait elsewhere, nobody would know for how long.
    """
    for node in walk(pattern):
        if isinstance(node, Except):
            yield from (forms.of(below).text for below in walk(node.pattern))


def uses(
    pattern: Pattern,
    forms: CanonicalForms,
    texts: Collection[str],
    above: Above = ALONE,
) -> Iterator[tuple[Pattern, Above]]:
    """The largest parts of a pattern that have one of the texts, and what is above each."""
    if forms.of(pattern).text in texts:
        yield pattern, above
        return
    for node, passed in operands_below(pattern, above):
        yield from uses(node, forms, texts, passed)


def atoms_left(pattern: Pattern, forms: CanonicalForms, texts: Collection[str]) -> Iterator[Atom]:
    """The atoms of a pattern that do not lie in one of the parts."""
    if forms.of(pattern).text in texts:
        return
    if isinstance(pattern, Atom):
        yield pattern
    for each in operands(pattern):
        yield from atoms_left(each, forms, texts)
