"""The sink proxies as the manager sees them: processes that remember nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cepheid.manager.attending import Attend, attend_nobody
from cepheid.manager.registered_sink import Target, Way
from cepheid.manager.wire import Frame, Gone
from cepheid.manager.worker import Worker
from cepheid.model.errors import InternalError

_ATTEMPTS = 3


@dataclass(slots=True)
class ProxyFacts:
    """What a proxy has delivered since the manager started."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a query found in a batch, who delivers it and where to.

    `begins` says that nothing is in the file of its target yet; `shown` is what a console must know
    of the query.
    """

    proxy: int
    target: Target
    table: bytes
    begins: bool = False
    shown: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Order:
    """What a proxy is asked, the files that grow by its answer, and those that it writes."""

    frame: Frame
    growing: Sequence[str]
    whole: Sequence[Path]


class SinkProxies:
    """Proxies 0 to `count` - 1; each writes one file for a batch in which its queries find some."""

    def __init__(self, out: Path, count: int, attend: Attend = attend_nobody) -> None:
        """`out` is the folder of the files; `attend` is called while proxies are waited for."""
        self._out = out.absolute()
        self._attend = attend
        self._workers: list[Worker] = []
        self.facts = [ProxyFacts() for _ in range(count)]

    def start(self) -> None:
        """Start all processes; drafts that killed ones left are removed."""
        self._out.mkdir(parents=True, exist_ok=True)
        self.forget_drafts(self._out)
        self._workers = [self._started() for _ in self.facts]

    @staticmethod
    def forget_drafts(folder: Path) -> None:
        """Remove what killed proxies had begun to write there."""
        for draft in folder.glob(".*batch-*"):
            draft.unlink(missing_ok=True)

    def process_id(self, proxy: int) -> int:
        """The process of a proxy."""
        return self._workers[proxy].process_id

    def deliver(self, batch: int, found: Sequence[Delivered]) -> dict[str, bytes]:
        """Have matches delivered; when this returns, the files of the batch are there.

        Returns what is to be added to files that grow, by their paths.
        """
        by_proxy: dict[int, list[Delivered]] = {}
        for each in found:
            by_proxy.setdefault(each.proxy, []).append(each)
        orders = {proxy: self._order(batch, proxy, own) for proxy, own in by_proxy.items()}
        for proxy, order in orders.items():
            with suppress(Gone):
                self._workers[proxy].send(order.frame)
        grown: dict[str, bytes] = {}
        for proxy, order in orders.items():
            pieces = self._finish(proxy, order.frame).parts
            grown.update(zip(order.growing, pieces, strict=True))
            self.facts[proxy].files += len(order.whole)
            self.facts[proxy].bytes += sum(path.stat().st_size for path in order.whole)
            self.facts[proxy].bytes += sum(len(piece) for piece in pieces)
        return grown

    def _order(self, batch: int, proxy: int, found: Sequence[Delivered]) -> _Order:
        """What a proxy is asked: the files it writes, what it hands back, what it shows."""
        files: dict[str, dict[str, Any]] = {}
        shown = []
        for number, each in enumerate(found):
            target = each.target
            path = self.path(batch, proxy)
            if target.way is Way.PARTS:
                assert target.path is not None
                path = Path(target.path) / f"{path.stem}.{target.format}"
            elif target.way is Way.GROWING_FILE:
                assert target.path is not None
                path = Path(target.path)
            elif each.shown is not None:
                shown.append({**each.shown, "table": number})
            told = {"way": target.way, "path": str(path), "format": target.format}
            file = files.setdefault(str(path), {**told, "begins": each.begins, "tables": []})
            file["tables"].append(number)
        head = {"do": "write", "files": list(files.values()), "shown": shown}
        is_growing = {path: file["way"] is Way.GROWING_FILE for path, file in files.items()}
        return _Order(
            Frame(head, [each.table for each in found]),
            [path for path, grows in is_growing.items() if grows],
            [Path(path) for path, grows in is_growing.items() if not grows],
        )

    def path(self, batch: int, proxy: int) -> Path:
        """The file of a batch: the same whenever the batch is done."""
        return self._out / f"batch-{batch:08}-proxy-{proxy}.jsonl"

    def end(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _finish(self, proxy: int, frame: Frame) -> Frame:
        """Wait for a proxy; another takes the place of one that died."""
        for _ in range(_ATTEMPTS):
            try:
                return self._workers[proxy].receive()
            except Gone:
                self._workers[proxy].end()
                self._workers[proxy] = self._started()
                with suppress(Gone):
                    self._workers[proxy].send(frame)
        raise InternalError.of(
            "proxy-dies", f"sink proxy {proxy} died {_ATTEMPTS} times at the same batch"
        )

    def _started(self) -> Worker:
        return Worker("cepheid.manager.sink_proxy", self._attend)
