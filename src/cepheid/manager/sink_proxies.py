"""The sink proxies as the manager sees them: processes that remember nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cepheid.manager.wire import Frame, Gone
from cepheid.manager.worker import Worker
from cepheid.model.errors import InternalError

_ATTEMPTS = 3


@dataclass(slots=True)
class ProxyFacts:
    """What a proxy has delivered since the manager started."""

    files: int = 0
    bytes: int = 0


class SinkProxies:
    """Proxies 0 to `count` - 1; each writes one file for a batch in which its queries find some."""

    def __init__(self, out: Path, count: int) -> None:
        """`out` is the folder of the files."""
        self._out = out.absolute()
        self._workers: list[Worker] = []
        self.facts = [ProxyFacts() for _ in range(count)]

    def start(self) -> None:
        """Start all processes; drafts that killed ones left are removed."""
        self._out.mkdir(parents=True, exist_ok=True)
        for draft in self._out.glob(".*batch-*"):
            draft.unlink(missing_ok=True)
        self._workers = [_started() for _ in self.facts]

    def process_id(self, proxy: int) -> int:
        """The process of a proxy."""
        return self._workers[proxy].process_id

    def deliver(self, batch: int, tables: Mapping[int, Sequence[bytes]]) -> None:
        """Have the tables of each proxy written; when this returns, the files are there."""
        frames = {
            proxy: Frame({"do": "write", "path": str(self.path(batch, proxy))}, parts)
            for proxy, parts in tables.items()
        }
        for proxy, frame in frames.items():
            with suppress(Gone):
                self._workers[proxy].send(frame)
        for proxy, frame in frames.items():
            self._finish(proxy, frame)
            self.facts[proxy].files += 1
            self.facts[proxy].bytes += self.path(batch, proxy).stat().st_size

    def path(self, batch: int, proxy: int) -> Path:
        """The file of a batch: the same whenever the batch is done."""
        return self._out / f"batch-{batch:08}-proxy-{proxy}.jsonl"

    def end(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _finish(self, proxy: int, frame: Frame) -> None:
        """Wait for a proxy; another takes the place of one that died."""
        for _ in range(_ATTEMPTS):
            try:
                self._workers[proxy].receive()
            except Gone:
                self._workers[proxy].end()
                self._workers[proxy] = _started()
                with suppress(Gone):
                    self._workers[proxy].send(frame)
            else:
                return
        raise InternalError.of(
            "proxy-dies", f"sink proxy {proxy} died {_ATTEMPTS} times at the same batch"
        )


def _started() -> Worker:
    return Worker("cepheid.manager.sink_proxy")
