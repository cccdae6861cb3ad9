"""Conditions of NEXT that are legal and decide nothing, which is told as a warning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cepheid.algebra.expression import And, Every, Expression, Not, Or, Previous, variables
from cepheid.algebra.expression import walk as parts_of
from cepheid.algebra.pattern import Next, Pattern, Plus, Union, bound_variables, operands, walk
from cepheid.languages.findings import Findings
from cepheid.languages.next.operators import all_variables
from cepheid.languages.references import enumerate_names
from cepheid.model.diagnostics import Span


def warn_of_branches(
    pattern: Pattern, predicates: Iterable[Expression], findings: Findings
) -> None:
    """Tell of comparisons between two branches of a union, of which a match has only one."""
    unions = list(_unions(pattern))
    for atom in (each for predicate in predicates for each in _atoms(predicate)):
        for union in unions:
            named = [variables(atom) & all_variables(each) for each in union.patterns]
            touched = [min(names) for names in named if names]
            if len(touched) > 1:
                findings.warning(
                    "never-together",
                    f"{enumerate_names(touched)} are branches of a union, and no match has both",
                    atom.span or Span(0, 0),
                    "never true",
                    "compare each branch with what stands outside the union, joined with OR",
                )


def warn_of_empty_look_back(pattern: Pattern, findings: Findings) -> None:
    """Tell of PREV and ALL at a `;` whose right side holds the run.

    What they look back at are the elements that are bound already, and there are none: the right
    side arrives as a whole.
    """
    for node in walk(pattern):
        if not isinstance(node, Next):
            continue
        awaited = bound_variables(node.second)
        for part in (*parts_of(node.skip), *parts_of(node.test)):
            if isinstance(part, Previous | Every) and part.variable in awaited:
                word = "PREV" if isinstance(part, Previous) else "ALL"
                findings.warning(
                    "nothing-to-look-back-at",
                    f"{word} finds no element here: the run of `{part.variable}` stands to the "
                    "right of the `;` that compares it",
                    part.span or Span(0, 0),
                    "the comparison is always true",
                    f"write {part.variable}.{part.name} for the last element of the run",
                )


def _unions(node: Pattern) -> Iterator[Union]:
    """The unions of which a match has one branch: an iteration may go through several."""
    if isinstance(node, Plus):
        return
    if isinstance(node, Union):
        yield node
    for each in operands(node):
        yield from _unions(each)


def _atoms(node: Expression) -> Iterator[Expression]:
    match node:
        case And(parts) | Or(parts):
            for each in parts:
                yield from _atoms(each)
        case Not(operand):
            yield from _atoms(operand)
        case _:
            yield node
