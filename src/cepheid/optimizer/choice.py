"""By what plans are chosen where several mean the same."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.model.errors import OptionError
from cepheid.optimizer.next_search import Search
from cepheid.statistics.next_costs import NextCosts

_SAME = 1e-9
"""Costs that differ by less, relatively, differ by rounding only: the user's shape stays."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cost model, and how the cheapest brackets of a chain are looked for."""

    costs: NextCosts
    search: Search = "pareto"

    def __post_init__(self) -> None:
        """Refuse a search that is none."""
        if self.search not in ("pareto", "paper"):
            raise OptionError.of(
                "bad-search",
                f"the search {self.search!r} is not known",
                help='write "pareto" or "paper"',
            )

    def is_cheaper(self, cost: float, other: float) -> bool:
        """Whether one plan costs less than another by more than rounding."""
        return cost < other * (1 - _SAME)
