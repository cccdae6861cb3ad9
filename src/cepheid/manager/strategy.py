"""How the node of a query is chosen, by name."""

from __future__ import annotations

from enum import Enum


class Strategy(Enum):
    """The strategies of the paper's evaluation (NEXT, DEBS 2009, section 5)."""

    GREEDY = "greedy"
    GREEDY_WITHOUT_REUSE = "greedy-without-reuse"
    ROUND_ROBIN = "round-robin"
