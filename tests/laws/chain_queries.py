"""Random plain chains of NEXT, as texts: one key or none, windows, conditions on single events."""

from __future__ import annotations

import random

_TYPES = "ABC"
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


class RandomChain:
    """One chain of 2 to 6 steps; types come more than once."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        choose = self._random
        self.steps = choose.choice((2, 2, 3, 3, 4, 5, 6))
        self.names = [f"x{n}" for n in range(self.steps)]
        pattern = " ; ".join(f"{choose.choice(_TYPES)} {name}" for name in self.names)
        where = self._key()
        for _ in range(choose.randint(0, 2)):
            first, second = sorted(choose.sample(range(self.steps), 2))
            names = [self.names[first], self.names[second]]
            choose.shuffle(names)
            where.append(f"({', '.join(names)}) OCCURS WITHIN {choose.randint(1, 12)}")
        for _ in range(choose.choice((0, 0, 1, 2))):
            where.append(self._condition())
        self.text = f"SELECT * FROM {pattern}" + (f" WHERE {', '.join(where)}" if where else "")

    def _key(self) -> list[str]:
        names = self._random.choice(((), ("k",), ("k",), ("s",), ("k", "s")))
        tests = []
        for name in names:
            for step in range(1, self.steps):
                # Equality with any event before is equality with all of them.
                other = self.names[self._random.randrange(step)]
                tests.append(f"FILTER({other}.{name} = {self.names[step]}.{name})")
        return tests

    def _condition(self) -> str:
        name = self._random.choice(self.names)
        text = self._random.choice(
            (
                f"{name}.v {self._random.choice(_COMPARED)} {self._random.randint(0, 3)}",
                f"NOT {name}.s CONTAINS 'a' OR {name}.v = 1",
                f"{name}.f > {name}.v - 0.5",
            )
        )
        return f"FILTER({text})" if self._random.random() < 0.4 else text
