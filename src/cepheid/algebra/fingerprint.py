"""A short stable name for what a query means, whatever it is called."""

from __future__ import annotations

from hashlib import blake2b

from cepheid.algebra.pattern import Pattern
from cepheid.algebra.query import Output
from cepheid.algebra.text import to_text


def fingerprint(pattern: Pattern, output: Output | None = None) -> str:
    """32 hexadecimal digits: the 128-bit BLAKE2b hash of the algebra's text.

    >>> from cepheid.algebra.pattern import Atom
    >>> len(fingerprint(Atom(("A",), "x")))
    32
    """
    text = to_text(pattern) if output is None else f"{to_text(pattern)}\n{to_text(output)}"
    return blake2b(text.encode("utf-8"), digest_size=16).hexdigest()
