"""How nodes are chosen for queries and operators, by name."""

from __future__ import annotations

from enum import StrEnum

from cepheid.model.errors import OptionError


class Strategy(StrEnum):
    """The strategies of the paper's evaluation (NEXT, DEBS 2009, section 5).

    >>> Strategy.named("round-robin") is Strategy.ROUND_ROBIN
    True
    """

    GREEDY = "greedy"
    GREEDY_WITHOUT_REUSE = "greedy-without-reuse"
    ROUND_ROBIN = "round-robin"

    @classmethod
    def named(cls, word: str) -> Strategy:
        """The strategy of that name; any other word is refused."""
        if word not in tuple(cls):
            raise OptionError.of(
                "bad-placement",
                f"the placement `{word}` is not known",
                help=f"one of {', '.join(cls)}",
            )
        return cls(word)
