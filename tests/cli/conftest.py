"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app

EXAMPLES = Path(__file__).parents[2] / "examples"


def query_of(story: str) -> Path:
    """The query of an example, whatever its language."""
    (query,) = (EXAMPLES / story).glob("query.*")
    return query


@pytest.fixture
def cepheid_command() -> Callable[..., Result]:
    """Runs `cepheid` with arguments, in this process."""

    def run(*arguments: object, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
