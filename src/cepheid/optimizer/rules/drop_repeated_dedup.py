"""Taking the first match of each key twice is taking it once."""

from __future__ import annotations

from cepheid.algebra.pattern import Dedup, Pattern


def drop_repeated_dedup(node: Pattern) -> Pattern | None:
    """
    Dedup(Dedup(A, key), key)  ->  Dedup(A, key)

    Sound because the inner one leaves one match for each key, which the outer one then keeps; a
    match whose key is undefined passes both. It would not be for different keys: the first match
    of the inner key need not be the first of the outer one, and after it others are gone.
    """
    match node:
        case Dedup(Dedup(_, inner) as kept, outer) if inner == outer:
            return kept
        case _:
            return None
