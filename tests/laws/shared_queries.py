"""Random sets of NEXT queries that have parts in common, under other names and in other orders."""

from __future__ import annotations

import random
from itertools import pairwise

import cepheid
from cepheid.model.errors import QueryError
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_queries import TYPES, RandomQuery


class RelatedQueries:
    """Chains over few types, conditions and windows, so that much of them is the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [
            "{a}; {b}",
            "({a}; {b}); {c}",
            "{a}; ({b}; {c})",
            "({a} | {b}); {c}",
            "({b} | {a}); {c}",
            "{a}; ({b} | {c})",
            "({a})+; {b}",
            "{a}; ({b} \\ {c})",
            "({a}; {b}) | ({b}; {c})",
        ]
        self._fields = [*self._random.sample(("k", "v"), 1), "k"]

    def text(self) -> str:
        """One query; its variables have names of its own."""
        r = self._random
        word = r.choice(self._words)
        letters = r.sample("pqrstuw", 4)
        kinds = {slot: r.choice(TYPES[:3] if r.random() < 0.7 else TYPES) for slot in "abc"}
        count = 0

        def atom(slot: str) -> str:
            nonlocal count
            count += 1
            return f"{kinds[slot]} {letters[count - 1]}"

        pattern = ""
        while word:
            if word[0] == "{":
                pattern, word = pattern + atom(word[1]), word[3:]
            else:
                pattern, word = pattern + word[0], word[1:]
        names = letters[:count]
        tests = self._conditions(names)
        return f"SELECT * FROM {pattern}" + (f" WHERE {', '.join(tests)}" if tests else "")

    def _conditions(self, names: list[str]) -> list[str]:
        r = self._random
        tests = []
        if r.random() < 0.4:
            field = r.choice(self._fields)
            pairs = list(pairwise(names))
            tests += [f"FILTER({a}.{field} = {b}.{field})" for a, b in pairs]
        for name in names:
            if r.random() < 0.25:
                test = r.choice(("v = 1", "v = 2", "s = 'a'", "f = 1", "v > 1"))
                tests.append(f"FILTER({name}.{test})" if r.random() < 0.7 else f"{name}.{test}")
        if r.random() < 0.3:
            tests.append(f"({names[0]}, {names[1]}) OCCURS WITHIN {r.choice((3, 6))}")
        r.shuffle(tests)
        return tests


def query_set(seed: int, size: int) -> list[CompiledQuery]:
    """Related queries, each fifth one of any kind."""
    related = RelatedQueries(seed)
    found: list[CompiledQuery] = []
    tried = 0
    while len(found) < size:
        tried += 1
        other = len(found) % 5 == 4
        text = RandomQuery(1000 * seed + tried).text if other else related.text()
        try:
            compiled = cepheid.compile(text, "next", name=f"q{len(found)}")
        except QueryError:
            continue
        found.append(compiled)
    return found
