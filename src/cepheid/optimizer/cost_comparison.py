"""What rewriting has changed and what it gains, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    operands,
)
from cepheid.optimizer.optimizer import Optimised
from cepheid.optimizer.union_shape import UnionShape, nested_union, union_shapes
from cepheid.statistics.next_costs import NextCosts, NotCosted


def compare_costs(written: Pattern, optimised: Optimised, costs: NextCosts) -> str:
    """The shape before and after, the estimated cost of both, and the rules that made it so.

    >>> from cepheid.algebra.text import from_text
    >>> from cepheid.optimizer.optimizer import optimise
    >>> chain = from_text("Next(Atom([A], a), Next(Atom([B], b), Atom([C], c)))")
    >>> costs = NextCosts({"A": 1, "B": 50, "C": 80})
    >>> print(compare_costs(chain, optimise(chain, costs=costs), costs))
    Shape, by estimated cost (events handled per unit of time)
      as written  181.62  a ; (b ; c)
      as run      131.98  (a ; b) ; c, 27 % less
      reassociate_next: 181.62 -> 131.98
        a ; (b ; c)
        (a ; b) ; c
    """
    return "\n".join(_lines(written, optimised, costs))


def shape_text(node: Pattern) -> str:
    """A pattern by its operators and variables alone, as NEXT writes it.

    >>> from cepheid.algebra.text import from_text
    >>> shape_text(from_text("Next(Plus(Atom([A], a)), Union(Atom([B], b), Atom([C], c)))"))
    'a+ ; (b | c)'
    """
    text = _shape(node)
    return text[1:-1] if isinstance(_bare(node), Next | Union | Except) else text


def _lines(written: Pattern, optimised: Optimised, costs: NextCosts) -> Iterator[str]:
    yield "Shape, by estimated cost (events handled per unit of time)"
    before = costs.of(written, unions_as_written=True)
    after = costs.of(optimised.pattern)
    if isinstance(before, NotCosted) or isinstance(after, NotCosted):
        reason = before.reason if isinstance(before, NotCosted) else getattr(after, "reason", "")
        yield f"  no cost of the whole: {reason}"
    else:
        width = max(len(_number(each.cost)) for each in (before, after))
        yield f"  as written  {_number(before.cost):>{width}}  {shape_text(written)}"
        gain = _gain(before.cost, after.cost)
        yield f"  as run      {_number(after.cost):>{width}}  {shape_text(optimised.pattern)}{gain}"
    for step in optimised.trace:
        if step.cost_before is None or step.cost_after is None:
            continue
        yield f"  {step.rule}: {_number(step.cost_before)} -> {_number(step.cost_after)}"
        yield f"    {shape_text(step.before)}"
        yield f"    {shape_text(step.after)}"
    for shape in union_shapes(optimised.pattern, costs):
        yield from _union_lines(shape, costs)


def _union_lines(shape: UnionShape, costs: NextCosts) -> Iterator[str]:
    as_written = costs.of(shape.union, unions_as_written=True)
    as_run = costs.of(shape.union)
    if isinstance(as_written, NotCosted) or isinstance(as_run, NotCosted):
        return
    yield f"  union, the rarest merged first: {_number(as_written.cost)} -> {_number(as_run.cost)}"
    yield f"    {shape_text(nested_union(shape))}"


def _gain(before: float, after: float) -> str:
    share = 0.0 if before == 0 else 1 - after / before
    return f", {share:.0%} less".replace("%", " %") if share >= 0.005 else ""


def _number(cost: float) -> str:
    return f"{cost:,.2f}" if 0.01 <= abs(cost) < 1e9 or cost == 0 else f"{cost:.3g}"


def _bare(node: Pattern) -> Pattern:
    while isinstance(node, Filter | Within):
        node = node.pattern
    return node


def _shape(node: Pattern) -> str:
    match node:
        case Atom(_, variable):
            return variable
        case Filter() | Within():
            return _shape(node.pattern)
        case Next(first, second):
            return f"({_shape(first)} ; {_shape(second)})"
        case Union(patterns):
            return f"({' | '.join(map(_shape, patterns))})"
        case Except():
            return f"({_shape(node.pattern)} \\ {_shape(node.negated)})"
        case Plus(pattern):
            return f"{_shape(pattern)}+"
        case Timer(pattern):
            return f"{_shape(pattern)}@"
        case _:
            inner = ", ".join(map(_shape, operands(node)))
            return f"{type(node).__name__}({inner})"
