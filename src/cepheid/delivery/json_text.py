"""Values as JSON, which has no NaN and no infinity: they are written as null."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any


def json_text(value: Any, text_of: Callable[[Any], str] = str) -> str:
    """The JSON of a value; `text_of` makes a text of what JSON does not know, such as a time.

    >>> json_text({"k": [1.5, float("nan")], "x": float("inf")})
    '{"k": [1.5, null], "x": null}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, default=text_of, allow_nan=False)
    except ValueError:  # seldom, so that values are looked through only then
        return json.dumps(_finite(value), ensure_ascii=False, default=text_of)


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
        case _:
            return value
