"""How undefined and absent values travel inside arrays of numbers, without masks beside them.

INT, BOOL (0 or 1), TIMESTAMP (microseconds UTC) and the codes of strings are int64; FLOAT is
float64. *Undefined* is a null, or what a division by zero or an overflow leaves; *absent* is an
attribute the event does not have (docs/semantics.md#null-and-absent). Values of the outside world
that happen to equal one of these become undefined on entry, so every other bit pattern is a value.
"""

from __future__ import annotations

import math

NULL_INT = -(2**63)
ABSENT_INT = -(2**63) + 1
MIN_INT = -(2**63) + 2
"""The smallest int64 that is a value: everything below it is undefined or absent."""
MAX_INT = 2**63 - 1

NULL_FLOAT = math.nan
ABSENT_FLOAT = -1.7976931348623157e308
"""The most negative finite float64; the infinities are values."""


def is_value(number: int) -> bool:
    """Whether an integer can travel as itself.

    >>> is_value(-5), is_value(2**63), is_value(NULL_INT)
    (True, False, False)
    """
    return MIN_INT <= number <= MAX_INT
