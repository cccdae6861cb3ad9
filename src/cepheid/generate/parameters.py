"""How generators refuse parameters that make no sense."""

from __future__ import annotations

from cepheid.model.errors import OptionError

BAD_PARAMETER = "bad-generator-parameter"


def require(holds: bool, complaint: str) -> None:
    """Raise an error with this complaint unless the condition holds."""
    if not holds:
        raise OptionError.of(BAD_PARAMETER, complaint)
