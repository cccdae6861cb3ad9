"""Random queries of NEXT, as texts: every operator, both kinds of conditions, windows."""

from __future__ import annotations

import random

TYPES = "ABCN"
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


class RandomQuery:
    """One query: a pattern of a few operators and the conditions it can carry."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._delays = random.Random(seed)
        self._names = 0
        self.iterated: list[str] = []
        self.variables: list[str] = []
        self.negated: list[str] = []
        operators = self._random.randint(1, 4)
        pattern = self._pattern(operators)
        key = self._random.random() < 0.5 and len(self.variables) > 1
        where = [*(self._key() if key else []), *self._conditions()]
        self.text = f"SELECT * FROM {pattern}" + (f" WHERE {', '.join(where)}" if where else "")

    def _leaf(self) -> str:
        self._names += 1
        name = f"x{self._names}"
        self.variables.append(name)
        return f"{self._random.choice(TYPES)} {name}"

    def _pattern(self, operators: int) -> str:
        return self._delayed(self._undelayed(operators))

    def _delayed(self, pattern: str) -> str:
        choose = self._delays
        return f"({pattern}) @ {choose.randint(1, 5)}" if choose.random() < 0.12 else pattern

    def _undelayed(self, operators: int) -> str:
        if operators == 0:
            return self._leaf()
        kind = self._random.choices((";", "|", "+", "\\"), (6, 2, 2, 2))[0]
        left = self._random.randint(0, operators - 1)
        match kind:
            case "+":
                before = len(self.variables)
                inside = self._pattern(min(operators - 1, 1))
                self.iterated += [v for v in self.variables[before:] if v not in self.iterated]
                return f"({inside})+"
            case "\\":
                first = self._pattern(left)
                before = len(self.variables)
                second = self._delayed(self._leaf())
                exception = self._delayed(self._leaf())
                self.negated.append(self.variables.pop())
                assert len(self.variables) > before
                return f"(({first}) ; (({second}) \\ ({exception})))"
            case _:
                return f"(({self._pattern(left)}) {kind} ({self._pattern(operators - 1 - left)}))"

    def _key(self) -> list[str]:
        """Equality of k along the variables, so that the instances can be indexed."""
        pairs = zip(self.variables, self.variables[1:], strict=False)
        tests = [f"FILTER({a}.k = {b}.k)" for a, b in pairs]
        tests += [f"FILTER(PREV({v}.k) = {v}.k)" for v in self.iterated]
        return tests

    def _conditions(self) -> list[str]:
        found = []
        for _ in range(self._random.randint(0, 3)):
            text = self._condition()
            if self._random.random() < 0.4 and "OCCURS" not in text:
                text = f"FILTER({text})"
            found.append(text)
        return found

    def _condition(self) -> str:
        choose = self._random
        one, other = choose.choice(self.variables), choose.choice(self.variables)
        op = choose.choice(_COMPARED)
        kinds = [f"{one}.v {op} {choose.randint(0, 3)}", f"{one}.v {op} {other}.v"]
        kinds.append(f"{one}.f {op} {other}.v + 0.5")
        kinds.append(f"NOT {one}.s CONTAINS 'a' OR {one}.v = 1")
        kinds.append(f"{one}.s {choose.choice(('=', '<>'))} {other}.s")
        if one != other and choose.random() < 0.8:
            kinds += [f"({one}, {other}) OCCURS WITHIN {choose.randint(1, 8)}"] * 2
        if self.iterated:
            run = choose.choice(self.iterated)
            kinds += [f"PREV({run}.v) {op} {run}.v", f"ALL({run}.v) {op} {run}.v"] * 2
            kinds.append(f"ALL({run}.s) <> {one}.s")
        if self.negated:
            kinds.append(f"{choose.choice(self.negated)}.k = {one}.k")
        return choose.choice(kinds)
