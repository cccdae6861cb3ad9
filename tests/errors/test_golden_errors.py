"""Every message to people, compared whole with the file that shows it.

A file has three parts, parted by lines of three dashes: options, the query, and the message.
`REWRITE=1 pytest tests/errors` writes the messages anew, to be read before they are committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from cepheid.languages.registry import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import LimitExceeded, QueryError

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.txt"))


def message_of(path: Path, options: str, text: str) -> str:
    known = yaml.safe_load(options) or {}
    catalogue = Catalogue.from_option(known.get("types"), closed=known.get("closed", False))
    source = SourceText(text, f"{path.stem}.{path.parent.name}")
    with pytest.raises((QueryError, LimitExceeded)) as refused:
        translate(source, path.parent.name, catalogue)
    return str(refused.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_message(path: Path) -> None:
    options, text, expected = path.read_text("utf-8").split("---\n", 2)
    found = message_of(path, options, text.removesuffix("\n"))
    if os.environ.get("REWRITE"):
        path.write_text(f"{options}---\n{text}---\n{found}\n", "utf-8")
        return
    assert found == expected.removesuffix("\n")
