"""Parameters read without a validator where nothing needs validating: texts, paths and flags.

Typer hands every value, also those not given, to pydantic, which takes a tenth of a second to load.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from typer.core import TyperCommand, TyperGroup


class QuickCommand(TyperCommand):
    """A command whose parameters are read quickly."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, and the option for help."""
        return [quickly(each) for each in super().get_params(ctx)]


class QuickGroup(TyperGroup):
    """The same for a command that has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, and the option for help."""
        return [quickly(each) for each in super().get_params(ctx)]


def quickly(parameter: Any) -> Any:
    """The same parameter, which takes plain values as they are."""
    descriptor = getattr(parameter, "type_descriptor", None)
    # An older Typer has its own types, and no validator.
    if descriptor is not None and "process_value" not in vars(parameter):
        parameter.process_value = _plain_first(parameter, descriptor.annotation)
    return parameter


def _plain_first(parameter: Any, annotation: Any) -> Callable[[Any, Any], Any]:
    usual: Callable[[Any, Any], Any] = parameter.process_value
    is_many = parameter.multiple or parameter.nargs == -1
    kind: Any = next(iter(get_args(annotation)), None) if is_many else annotation

    def is_plain(value: Any) -> bool:
        is_exact = isinstance(kind, type) and type(value) is kind
        return is_exact or (kind is Path and isinstance(value, str | Path))

    def process_value(context: Any, value: Any) -> Any:
        plain: Any
        if value is None and not parameter.required:
            plain = () if is_many else None
        elif not is_many and is_plain(value):
            plain = kind(value)
        elif is_many and value and all(is_plain(each) for each in value):
            plain = [kind(each) for each in value]
        else:
            return usual(context, value)
        return (
            plain if parameter.callback is None else parameter.callback(context, parameter, plain)
        )

    return process_value
