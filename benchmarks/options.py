"""What the command line decides for every benchmark."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """Sizes, repeats and where scratch data may lie."""

    quick: bool = False
    repeats: int | None = None  # None: the benchmark's own choice
    only: tuple[str, ...] = ()  # names of parts; empty: all
    data: Path = field(
        default_factory=lambda: Path(tempfile.gettempdir()) / "cepheid-benchmarks" / "data"
    )

    def wants(self, part: str) -> bool:
        """Whether a part of a benchmark was asked for."""
        return not self.only or part in self.only

    def times(self, full: int, quick: int = 2) -> int:
        """The number of timed runs."""
        return self.repeats or (quick if self.quick else full)
