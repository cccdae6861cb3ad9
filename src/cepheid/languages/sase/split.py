"""WHERE splits into P+ over the positive components and one P- for each negative one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cepheid.algebra.expression import And, Expression, Or, conjunction, conjuncts, variables
from cepheid.languages.findings import Findings
from cepheid.languages.scope import Scope
from cepheid.model.diagnostics import Span


@dataclass(frozen=True, slots=True)
class SplitPredicate:
    """`positive` holds for the match alone, `negative[n]` for the match with an event of n."""

    positive: Expression
    negative: Mapping[str, Expression]


def split_predicate(predicate: Expression, scope: Scope, findings: Findings) -> SplitPredicate:
    """Give each conjunct to the match or to one negative component."""
    negated = frozenset(each.variable for each in scope.negatives)
    positive: list[Expression] = []
    negative: dict[str, list[Expression]] = {variable: [] for variable in negated}
    for conjunct in conjuncts(predicate):
        touched = variables(conjunct) & negated
        if not touched:
            positive.append(conjunct)
        elif _is_splittable(conjunct, negated, findings):
            negative[next(iter(touched))].append(conjunct)
    return SplitPredicate(
        conjunction(positive),
        {variable: conjunction(parts) for variable, parts in negative.items()},
    )


def _is_splittable(conjunct: Expression, negated: frozenset[str], findings: Findings) -> bool:
    atoms = list(_atoms(conjunct))
    touched = [sorted(variables(atom) & negated) for atom in atoms]
    crowded = next((i for i, names in enumerate(touched) if len(names) > 1), None)
    if crowded is not None:
        first, second = touched[crowded][:2]
        findings.error(
            "two-negatives",
            f"`{first}` and `{second}` are both negated, and no match has events for both",
            _span(atoms[crowded]),
            "names two negated components",
            help=f"compare `{first}` and `{second}` with a component that is not negated",
        )
        return False
    free = next((i for i, names in enumerate(touched) if not names), None)
    if free is not None:
        bound = next(i for i, names in enumerate(touched) if names)
        findings.error(
            "mixed-or",
            f"OR joins a condition on the negated `{touched[bound][0]}` with one that is not on it",
            _span(atoms[free]),
            f"says nothing about `{touched[bound][0]}`",
            notes=(
                f"the condition on `{touched[bound][0]}` is at "
                f"{findings.place(_span(atoms[bound]))}",
                "a condition either selects matches or selects events that must be missing",
            ),
            help="write one query for each side of the OR",
        )
        return False
    different = next((i for i, names in enumerate(touched) if names != touched[0]), None)
    if different is not None:
        findings.error(
            "mixed-or",
            f"OR joins conditions on two negated components, `{touched[0][0]}` and "
            f"`{touched[different][0]}`",
            _span(atoms[different]),
            f"about `{touched[different][0]}`, not `{touched[0][0]}`",
            help="join them with AND, or write one query for each",
        )
        return False
    return True


def _atoms(node: Expression) -> Iterator[Expression]:
    if isinstance(node, And | Or):
        for operand in node.operands:
            yield from _atoms(operand)
    else:
        yield node


def _span(node: Expression) -> Span:
    return node.span or Span(0, 0)
