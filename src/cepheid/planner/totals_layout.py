"""A plan of successors whose runs are kept as totals, over columns of known types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cepheid.algebra.expression import ScalarType
from cepheid.algebra.pattern import Atom, Plus
from cepheid.kernels.match_nodes import FACTS
from cepheid.kernels.succession_shape import Leaf, Repeat, SuccessionShape, Totals
from cepheid.planner.run_totals import Measure
from cepheid.planner.running_totals import KeptRun, RunningTotals
from cepheid.planner.succession_layout import Above, OneQuery, SuccessionLayout
from cepheid.planner.succession_plan import SuccessionPlan


def lay_out_totals(
    plan: SuccessionPlan, totals: RunningTotals, type_of_column: Callable[[str], ScalarType]
) -> SuccessionLayout:
    """The same operators as without totals, and what is measured as further columns.

    Two rows of hashes of the events come behind the columns of whole numbers.
    """
    return _WithTotals(plan, totals, type_of_column).build()


class _WithTotals(OneQuery):
    def __init__(
        self,
        plan: SuccessionPlan,
        totals: RunningTotals,
        type_of_column: Callable[[str], ScalarType],
    ) -> None:
        super().__init__(plan, type_of_column)
        self._totals = totals
        self._kept: dict[int, KeptRun] = {}
        for name in sorted(totals.attributes):
            self.conditions.column(name)

    def build(self) -> SuccessionLayout:
        layout = super().build()
        of = self.conditions
        lanes = FACTS + len(of.whole)
        operators = list(layout.shape.operators)
        measures = {}
        kept = set()
        for number, run in self._kept.items():
            leaf = operators[number]
            assert isinstance(leaf, Leaf)
            kept.add(leaf.variable)
            measured = []
            for slot, name in enumerate(run.measured):
                kind = of.type_of(name)
                is_real = kind is ScalarType.FLOAT
                measured.append((of.real[name] if is_real else FACTS + of.whole[name], is_real))
                measures[leaf.variable, name] = Measure(slot, kind)
            operators[number] = replace(leaf, totals=Totals(lanes, tuple(measured)))
        shape = SuccessionShape(tuple(operators), layout.shape.roots)
        return replace(layout, shape=shape, kept_runs=frozenset(kept), measures=measures)

    def _repeat(self, node: Plus, operands: list[int], above: Above) -> Repeat:
        made = super()._repeat(node, operands, above)
        run = self._totals.of(node.pattern.variable) if isinstance(node.pattern, Atom) else None
        if run is None:
            return made
        self._kept[operands[0]] = run
        return replace(made, keeps_totals=True, ranks=run.ranked)
