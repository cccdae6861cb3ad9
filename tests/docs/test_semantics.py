"""The page of the semantics is true: its examples run, its table of limits and its links hold."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

import cepheid
from cepheid.algebra import expression_text
from cepheid.algebra.bind import bind
from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Pattern, walk
from cepheid.algebra.text import from_text, to_text
from cepheid.languages import limits
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import Limits, Options, make_options
from cepheid.optimizer.optimizer import optimise
from cepheid.testing import assert_matches
from tests.oracle.denotation import matches
from tests.oracle.events import Ev, Match
from tests.oracle.histories import history

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "semantics.md"
TEXT = PAGE.read_text("utf-8")

_FIELDS = {"events", "pattern", "matches", "sase", "options"}
_MATCH_FIELDS = {"match", "start", "end", "final", "score", "failure", "attributes"}


@dataclass(frozen=True)
class Example:
    """One block of the page, under its heading."""

    title: str
    events: str
    pattern: Pattern
    matches: list[str | dict[str, Any]]
    sase: str | None
    options: dict[str, Any]

    def __str__(self) -> str:
        return self.title


def load_examples() -> list[Example]:
    found: list[Example] = []
    heading = ""
    for part in re.split(r"^(#+ [^\n]*|```yaml\n.*?^```)$", TEXT, flags=re.MULTILINE | re.DOTALL):
        if part.startswith("#"):
            heading = part.lstrip("# ").strip()
        elif part.startswith("```yaml"):
            entry = yaml.safe_load(part.removeprefix("```yaml").removesuffix("```"))
            assert entry.keys() <= _FIELDS, entry
            number = sum(each.title.startswith(f"{heading} ") for each in found) + 1
            found.append(
                Example(
                    f"{heading} {number}",
                    entry["events"],
                    from_text(entry["pattern"]),
                    entry["matches"],
                    entry.get("sase"),
                    entry.get("options", {}),
                )
            )
    return found


EXAMPLES = load_examples()
IN_SASE = [example for example in EXAMPLES if example.sase is not None]
TOLD = [example for example in IN_SASE if all(isinstance(m, str) for m in example.matches)]


def name_of(event: Ev | None) -> str:
    if event is None:
        return "-"
    return event.type if isinstance(event.id, tuple) else str(event.id)


def described(match: Match, expected: str | dict[str, Any]) -> str | dict[str, Any]:
    """A match, in the words in which the expected one is told."""
    names = " ".join(name_of(event) for _, event in match.bindings)
    if isinstance(expected, str):
        return f"{names} @{match.te}" if "@" in expected else names
    assert expected.keys() <= _MATCH_FIELDS, expected
    told = {
        "match": names,
        "start": match.ts,
        "end": match.te,
        "final": match.fin,
        "score": round(match.p, 4),
        "failure": match.fail,
        "attributes": dict(match.events[0].attrs) if match.events else {},
    }
    return {name: told[name] for name in expected}


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_by_definition(example: Example) -> None:
    check(example.pattern, closed=True)
    events = history(example.events)
    for pattern in (example.pattern, optimise(example.pattern, check=True).pattern):
        found = matches(pattern, events)
        assert len(found) == len(example.matches), [match.ids for match in found]
        told = zip(found, example.matches, strict=True)
        assert [described(*each) for each in told] == example.matches


@pytest.mark.parametrize("example", IN_SASE, ids=str)
def test_the_query_means_the_pattern(example: Example) -> None:
    assert example.sase is not None
    query = cepheid.compile(example.sase).stages(make_options(example.options))[-1]
    bound = bind(query.pattern, TimeDomain(is_timestamp=False), {})
    assert to_text(optimise(bound).pattern) == to_text(optimise(example.pattern).pattern)


@pytest.mark.parametrize("example", TOLD, ids=str)
def test_in_the_engine(example: Example) -> None:
    assert_matches(example.events, example.sase, example.matches, **example.options)


def test_every_node_has_an_example() -> None:
    kinds = {type(node).__name__ for each in EXAMPLES for node in walk(each.pattern)}
    family = {kind.__name__ for kind in Pattern.__args__}  # type: ignore[attr-defined]
    assert kinds == family
    headings = set(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE))
    assert family <= headings


def test_the_python_on_the_page_says_what_it_shows() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    text = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner(verbose=False)
    told: list[str] = []
    runner.run(test, out=told.append)
    assert not told, "".join(told)


def test_the_limits_are_the_real_ones() -> None:
    table = TEXT.split("## Limits")[1]
    rows = re.findall(r"^\|[^|]*\| (.*?) \| `([a-z-]+)` \|$", table, re.MULTILINE)
    said = {
        error: int(re.findall(r"\d[\d,]*", amount)[-1].replace(",", "")) for amount, error in rows
    }
    defaults = Limits()
    assert said == {
        "text-too-large": limits.LARGEST_TEXT,
        "nesting-too-deep": limits.DEEPEST_NESTING,
        "too-many-components": limits.MOST_COMPONENTS,
        "too-many-conditions": limits.MOST_CONDITIONS,
        "too-many-comparisons": limits.MOST_COMPARISONS,
        "too-deep": expression_text.MAX_DEPTH,
        "too-many-live-events": defaults.live_events,
        "too-many-instances": defaults.live_events,
        "too-many-matches": defaults.matches_per_table,
    }
    for field in fields(Limits):
        assert f"`limits.{field.name}`" in table


def test_every_option_is_told() -> None:
    table = TEXT.split("## Options")[1].split("## Limits")[0]
    told = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert told == {field.name for field in fields(Options)}


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings get."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def test_links_lead_somewhere() -> None:
    known = anchors(TEXT)
    links = re.findall(r"\]\(#([\w-]+)\)", TEXT)
    assert links
    assert set(links) <= known
    for path in re.findall(r"\]\(([\w/.-]+\.md)\)", TEXT):
        assert (PAGE.parent / path).exists(), path


def test_the_source_cites_sections_that_exist() -> None:
    known = anchors(TEXT)
    cited = 0
    for path in (ROOT / "src").rglob("*.py"):
        for anchor in re.findall(r"docs/semantics\.md#([\w-]+)", path.read_text("utf-8")):
            cited += 1
            assert anchor in known, f"{path.name} cites #{anchor}"
    assert cited > 0
