"""What a kernel of NEXT's operators looks like: the operators in the order in which they work.

Operators are numbered from 0, operands before those that use them; the last one is the root. All of
them work on the events of one end at a time (SPEC A1.4: "the next stable set of events").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Condition:
    """The body of a generated function over `m` (bound so far) and `q` (what comes next).

    `lines` fetch what `answer` uses. The planner writes both (planner.succession_conditions).
    """

    lines: tuple[str, ...]
    answer: str

    @property
    def is_true(self) -> bool:
        """Whether it always holds."""
        return self.answer == "True"


ALWAYS = Condition((), "True")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Events whose mask has `bit`, bound to variable number `variable`."""

    bit: int
    variable: int


@dataclass(frozen=True, slots=True)
class Merge:
    """What any of the operators finds."""

    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """What an operator finds, if it passes."""

    operand: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Deadline:
    """A match may wait until `window` (a number in `windows`) after its event of a variable."""

    variable: int
    window: int


@dataclass(frozen=True, slots=True)
class Follow:
    """Matches of `first` wait for their immediate successor among those of `second`.

    `first_key` and `second_key` give a hash of what `skip` compares for equality; `skip` itself is
    tested too, so that hashes may collide. `may_be_unordered` says that what `second` finds has to
    be put in the stable order first.
    """

    first: int
    second: int
    skip: Condition
    test: Condition
    first_key: Condition
    second_key: Condition
    deadlines: tuple[Deadline, ...]
    may_be_unordered: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """All runs of immediate successors; a run is at most `most` long if that is given."""

    operand: int
    start: Condition
    skip: Condition
    test: Condition
    first_key: Condition
    second_key: Condition
    may_be_unordered: bool
    is_capped: bool


@dataclass(frozen=True, slots=True)
class Exclude:
    """What `operand` finds, unless something of `negated` came after its event of `since`.

    After a union `since` has a variable for each branch; the latest of those bound counts. One that
    `reports` finds something else instead: the match with variables of negative numbers (-2 - v),
    and after it the earliest exception under -1.
    """

    operand: int
    negated: int
    since: tuple[int, ...]
    condition: Condition
    reports: bool = False


Operator: TypeAlias = Leaf | Merge | Test | Follow | Repeat | Exclude


@dataclass(frozen=True, slots=True)
class SuccessionShape:
    """The operators, and the types of the columns that their conditions read."""

    operators: tuple[Operator, ...]
    columns: tuple[str, ...]

    @property
    def waiting(self) -> tuple[int, ...]:
        """The operators that keep instances."""
        return tuple(
            k for k, each in enumerate(self.operators) if isinstance(each, Follow | Repeat)
        )

    @property
    def witnesses(self) -> tuple[int, ...]:
        """The operators that keep exceptions."""
        return tuple(k for k, each in enumerate(self.operators) if isinstance(each, Exclude))
