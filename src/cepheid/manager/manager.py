"""The central manager (NEXT, DEBS 2009, section 4.1): it takes queries, places them on nodes, feeds
nodes with events, keeps statistics, and hands matches to sink proxies.

All that happens is in the journal, in the order in which it happened. A query's coming and going is
done and then written down; a batch of events is written down before (it is kept) and after (it is
done). A manager that was killed goes on from its last checkpoint: it does again what the journal
tells, throwing away the matches of batches that were done, and the batch that was under way leaves
the same files again. So nothing is lost and nothing comes twice.

One thread at a time drives a manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.hosts.in_process import as_time
from cepheid.manager.delivering import deliver_batch
from cepheid.manager.durable import SUM
from cepheid.manager.entries import Entries, Entry
from cepheid.manager.query_load import submitted_operators
from cepheid.manager.registered_sink import prepare_target, target_of
from cepheid.manager.setting import Setting
from cepheid.manager.sink_proxies import SinkProxies
from cepheid.manager.state_folder import Checkpoint, StateFolder
from cepheid.manager.stream_progress import StreamProgress
from cepheid.manager.supervised_node import Question, SupervisedNode
from cepheid.manager.wire import Frame, error_as_json
from cepheid.model.diagnostics import Diagnostic, did_you_mean
from cepheid.model.errors import CepheidError, DataError, OptionError, QueryError
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.planner.prepare import time_domain


class Manager:
    """Queries, nodes and sink proxies over the state in a folder."""

    def __init__(self, folder: StateFolder, setting: Setting) -> None:
        """Start nodes and proxies, and go on where the journal ends."""
        self.setting = setting
        self.options = make_options(setting.options)
        self.entries = Entries()
        self.progress = StreamProgress(self.options)
        self.placement = FusedPlacement(setting.nodes, setting.sinks, setting.strategy)
        self.sinks = SinkProxies(setting.out, setting.sinks)
        self.nodes = [SupervisedNode(n, setting.options) for n in range(setting.nodes)]
        self.schema: pa.Schema | None = None
        self.files: dict[str, Mapping[str, Any]] = {}
        self.trouble: CepheidError | None = None
        self._folder = folder
        self._journal = folder.journal
        self._taken = 0
        self._done = 0
        self._since_checkpoint = 0
        self._estimated_from: str | None = None
        try:
            self._recover()
        except BaseException:
            self.end()
            raise

    # -- queries ----------------------------------------------------------------------------------

    def submit(
        self,
        text: str,
        *,
        name: str | None = None,
        at: str | int | None = None,
        language: str | None = None,
        query: str | None = None,
        source: str = "query",
        folder: str | None = None,
    ) -> tuple[Entry, tuple[Diagnostic, ...]]:
        """Add a query; returns it, and what is doubtful in its text.

        The file of a sink that the text registers is looked for from `folder` on.
        """
        compiled = compile_text(text, language, name=source)
        if query is not None:
            compiled = compiled[query]
        self._refuse_sources(compiled)
        usual = compiled.name if compiled.name != "query" else Path(source).stem
        chosen = self.entries.free_name(name, usual)
        warnings = compiled.warnings(self.options)
        target = target_of(compiled, Path.cwd() if folder is None else Path(folder))
        time = self._effective(at)
        operators = submitted_operators(
            compiled, self.options, self.schema, self.progress.statistics()
        )
        place = self.placement.choose(operators)
        paths = self.entries.paths(self.progress.watermark)
        prepare_target(target, paths, self.setting.events.resolve(), self._folder.path.resolve())
        record = {
            "op": "add",
            "name": chosen,
            "text": text,
            "source": source,
            "language": compiled.language,
            "query": compiled.name,
            "node": place.node,
            "sink": place.sink,
            "target": target.as_json(),
            "at": time,
            "when": _now(),
        }
        self._change(record)
        self.placement.put(chosen, place, operators)
        return self.entries.by_name[chosen], warnings

    def pause(self, name: str, at: str | int | None = None) -> None:
        """Let a query see no events from a time on (default: from now on)."""
        if self.entries.known(name).state == "running":
            self._change({"op": "pause", "name": name, "at": self._effective(at), "when": _now()})
            self.placement.drop(name)

    def resume(self, name: str, at: str | int | None = None) -> None:
        """Let a paused query see events again."""
        entry = self.entries.known(name)
        if entry.state == "paused":
            self._change({"op": "resume", "name": name, "at": self._effective(at), "when": _now()})
            self._count_in(entry)

    def remove(self, name: str, at: str | int | None = None) -> None:
        """Stop a query for good."""
        self.entries.known(name)
        self._change({"op": "remove", "name": name, "at": self._effective(at), "when": _now()})
        self.placement.drop(name)

    def _change(self, record: Mapping[str, Any]) -> None:
        """Do it on the query's node, then write it down: what was not done is not told again."""
        question = self._question(record)
        if question is not None:
            self._node_of(record).ask(question)
        self._journal.append(record)
        self.entries.apply(record)
        self.trouble = None  # a batch that could not be done may be possible now

    def _node_of(self, record: Mapping[str, Any]) -> SupervisedNode:
        if record["op"] == "add":
            return self.nodes[int(record["node"])]
        return self.nodes[self.entries.known(record["name"]).place.node]

    def _question(self, record: Mapping[str, Any]) -> Question | None:
        """What a node is asked for a record; a query that failed is on no node any more."""
        if record["op"] == "add":
            statistics = None if "statistics" in self.setting.options else self.progress.news()
            asked = {**record, "do": "add", "statistics": statistics}
        elif self.entries.known(record["name"]).problem is not None:
            return None
        else:
            do = "remove" if record["op"] == "fail" else record["op"]
            asked = {"do": do, "name": record["name"], "at": record["at"]}
        return partial(Frame, asked)

    def _effective(self, at: str | int | None) -> int | None:
        """From when on a change counts: never before an event that was seen already."""
        latest = self.progress.latest
        if at is None:
            return None if latest is None else latest + 1
        time = parse_time(at)
        if latest is not None and time <= latest:
            raise OptionError.of(
                "too-early",
                f"events up to {self._told(latest)} have been seen, "
                f"so nothing can change at {self._told(time)}",
                help="leave out --at, or give a later time",
            )
        return time

    def _told(self, time: int) -> str:
        """A time as people write it."""
        column = None if self.schema is None else self.schema.field(self.options.end_column).type
        if column is None or not pa.types.is_timestamp(column):
            return str(time)
        zone = "" if column.tz is None else "Z"
        return f"{pa.scalar(time, pa.timestamp('us')).as_py().isoformat()}{zone}"

    def _refuse_sources(self, compiled: CompiledQuery) -> None:
        if compiled.program.catalogue.sources:
            raise QueryError.of(
                "sources-not-taken",
                "the text registers sources, and a manager's events come from its folder",
                help="leave the registrations out; the type column names the source of an event",
            )

    def _count_in(self, entry: Entry) -> None:
        """A query runs (again) on its node."""
        operators = submitted_operators(
            entry.compiled, self.options, self.schema, self.progress.statistics()
        )
        self.placement.put(entry.name, entry.place, operators)

    # -- events -----------------------------------------------------------------------------------

    @property
    def has_waiting(self) -> bool:
        """Whether there are batches that were taken and are not done."""
        return self._done < self._taken and self.trouble is None

    @property
    def waiting(self) -> int:
        """How many."""
        return self._taken - self._done

    def take_file(
        self, name: str, facts: Mapping[str, Any], batches: Iterable[pa.RecordBatch]
    ) -> int:
        """Take all events of a file at once, or none; returns how many."""
        number = self._taken
        rows = 0
        for batch in batches:
            if batch.num_rows:
                self._folder.keep_events(number, _written(batch))
                number += 1
                rows += batch.num_rows
        taken = {"op": "file", "name": name, "batches": number - self._taken, "rows": rows}
        self._note({**taken, **facts})
        return rows

    def check_columns(self, schema: pa.Schema) -> None:
        """Refuse events without the columns that every event must have."""
        time_domain(schema, self.options)
        for column in (self.options.type, self.options.start, self.options.id):
            if column is not None and schema.get_field_index(column) < 0:
                raise DataError.of(
                    "unknown-column",
                    f"the events have no column `{column}`",
                    help=did_you_mean(column, schema.names)
                    or f"columns: {', '.join(schema.names)}",
                )

    def refuse_file(self, name: str, facts: Mapping[str, Any], problem: CepheidError) -> None:
        """Leave a file alone for good: it cannot be read, or does not fit the others."""
        self._note({"op": "refused", "name": name, "error": error_as_json(problem), **facts})

    def _note(self, record: Mapping[str, Any]) -> None:
        self._journal.append(record)
        self._count_file(record)

    def _count_file(self, record: Mapping[str, Any]) -> None:
        if record["op"] in ("file", "refused"):
            self.files[record["name"]] = record
            self._taken += record.get("batches", 0)

    def do_batch(self) -> int:
        """Feed the next batch to the nodes and deliver what they find; returns how many matches.

        Raises what a node has to say against the batch; then it waits until a query is stopped.
        """
        number = self._done
        mark = self.progress.mark()
        try:
            counts, found = self._feed(number)
        except CepheidError as problem:
            self.progress.go_back(mark)
            self.trouble = problem
            raise
        ends = deliver_batch(number, found, self.entries, self.sinks, self._journal, self.setting)
        record = {"op": "done", "batch": number, "matches": counts, "ends": ends}
        self._journal.append(record)
        self.entries.apply(record)
        self._is_done()
        self._estimate_anew()
        return sum(counts.values())

    def _is_done(self) -> None:
        self._done += 1
        self._since_checkpoint += 1

    def _feed(self, number: int) -> tuple[dict[str, int], list[tuple[str, bytes]]]:
        """What the nodes find in a batch: how many matches by query, and tables of them.

        A batch goes to the nodes that need one of its types; the others are told the time. If
        one of them cannot do it, all are put back to before it.
        """
        batch = _read(self._folder.events(number))
        self._know(batch.schema)
        types = self.progress.see(batch)
        watermark = self.progress.watermark
        for node in self.nodes:
            needs = node.facts.needs
            if needs is None or not needs.isdisjoint(types):
                node.facts.received += batch.num_rows
                node.begin(partial(self._batch_frame, number, watermark))
            else:
                node.begin(partial(Frame, {"do": "advance", "watermark": watermark}))
        self.progress.collect(batch)  # while the nodes are at it
        answers, problem = self._answers()
        if problem is not None:
            for node in self.nodes:
                if node.number in answers:
                    node.take_back()
            raise problem
        counts: dict[str, int] = {}
        tables: list[tuple[str, bytes]] = []
        for answer in answers.values():
            told = answer.head
            for name, count, part in zip(told["names"], told["counts"], answer.parts, strict=True):
                counts[name] = counts.get(name, 0) + count
                tables.append((name, part))
        return counts, tables

    def _answers(self) -> tuple[dict[int, Frame], CepheidError | None]:
        """The answers of the nodes that could do it, and what one that could not had to say."""
        answers: dict[int, Frame] = {}
        problem: CepheidError | None = None
        for node in self.nodes:
            try:
                answers[node.number] = node.finish()
            except CepheidError as found:
                problem = found
        return answers, problem

    def _estimate_anew(self) -> None:
        """Estimate loads anew when much more is known of the events than before."""
        known = self.progress.news()
        if known is self._estimated_from:
            return
        self._estimated_from = known
        for entry in self.entries.by_name.values():
            if entry.state == "running":
                self._count_in(entry)

    def _batch_frame(self, number: int, watermark: int) -> Frame:
        head = {"do": "feed", "watermark": watermark}
        return Frame(head, (self._folder.events(number),))

    def _know(self, schema: pa.Schema) -> None:
        """The first events tell the columns: queries that do not fit them fail, alone."""
        if self.schema is not None:
            return
        self.schema = schema
        for entry in list(self.entries.by_name.values()):
            if entry.problem is not None:
                continue
            try:
                self._fit(entry)
            except CepheidError as problem:
                told = error_as_json(problem)
                self._change({"op": "fail", "name": entry.name, "at": None, "error": told})
                self.placement.drop(entry.name)

    def _fit(self, entry: Entry) -> None:
        operators = submitted_operators(entry.compiled, self.options, self.schema, None)
        if not entry.is_paused:
            self.placement.put(entry.name, entry.place, operators)

    # -- what is kept -----------------------------------------------------------------------------

    @property
    def wants_checkpoint(self) -> bool:
        """Whether enough batches were done since the last one."""
        return self._since_checkpoint >= self.setting.checkpoint_every

    @property
    def has_news(self) -> bool:
        """Whether a batch was done since the last checkpoint."""
        return self._since_checkpoint > 0

    def checkpoint(self) -> None:
        """Keep the state of all nodes; the events before it are not needed any more."""
        snapshots = [node.take_snapshot() for node in self.nodes]
        facts = {
            **self.progress.state(),
            "schema": None if self.schema is None else self.schema.serialize().to_pybytes().hex(),
        }
        kept = self._folder.keep_checkpoint(snapshots, self._done, facts)
        for node in self.nodes:
            node.kept(partial(kept.snapshot, node.number))
        self._since_checkpoint = 0
        if self._journal.is_long(self.setting.longest_journal):
            self._journal.begin_anew(self._sum())

    def _sum(self) -> dict[str, Any]:
        """What all records of the journal come to; the nodes are in the checkpoint."""
        return {
            "begin": self.setting.begin,
            "entries": self.entries.as_json(self.progress.watermark),
            "files": list(self.files.values()),
            "done": self._done,
            "placed": self.placement.placed_ever,
        }

    def _set_sum(self, told: Mapping[str, Any]) -> None:
        self.entries.set_json(told["entries"])
        for record in told["files"]:
            self._count_file(record)
        self._done = told["done"]

    def end(self) -> None:
        """End nodes and proxies; the state stays."""
        for node in self.nodes:
            node.end()
        self.sinks.end()

    def _recover(self) -> None:
        """Start the nodes from the last checkpoint, and do again what the journal tells since."""
        checkpoint = self._folder.checkpoint()
        self._start_nodes(checkpoint)
        before = 0 if checkpoint is None else checkpoint.records
        records, placed = self._journal.records, 0
        if records and records[0]["op"] == SUM:
            self._set_sum(records[0])
            placed, records = records[0]["placed"], records[1:]
        for number, record in enumerate(records, self._journal.begun_at):
            if number >= before:
                self._do_again(record)
            elif record["op"] == "done":
                self._done += 1
            self.entries.apply(record)
            self._count_file(record)
        for entry in self.entries.by_name.values():
            if entry.state == "running":
                self._count_in(entry)
        for path in self.entries.paths(self.progress.watermark):
            self.sinks.forget_drafts(Path(path))
        self.placement.placed_ever = placed + sum(each["op"] == "add" for each in records)
        self._journal.forget()

    def _start_nodes(self, checkpoint: Checkpoint | None) -> None:
        for node in self.nodes:
            node.start(None if checkpoint is None else partial(checkpoint.snapshot, node.number))
        self.sinks.start()
        for node in self.nodes:
            node.started()
        if checkpoint is not None:
            self.progress.set_state(checkpoint.facts)
            if checkpoint.facts["schema"] is not None:
                written = bytes.fromhex(checkpoint.facts["schema"])
                self.schema = pa.ipc.read_schema(pa.py_buffer(written))

    def _do_again(self, record: Mapping[str, Any]) -> None:
        match record["op"]:
            case "add" | "pause" | "resume" | "remove" | "fail":
                question = self._question(record)
                if question is not None:
                    self._node_of(record).ask(question)
            case "done":
                self._schema_again(record["batch"])
                self._feed(record["batch"])  # what it finds was delivered
                self._is_done()
            case _:
                pass

    def _schema_again(self, number: int) -> None:
        """Queries that do not fit were found out before, and stand so in the journal."""
        if self.schema is None:
            self.schema = _read(self._folder.events(number)).schema


def parse_time(at: str | int) -> int:
    """A time as a client writes it: a number in the events' unit, or a date and time of ISO 8601.

    >>> parse_time("12"), parse_time("1970-01-01T00:00:01Z")
    (12, 1000000)
    """
    if isinstance(at, int):
        return at
    text = at.strip()
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        return as_time(datetime.fromisoformat(text))
    except ValueError:
        raise OptionError.of(
            "bad-time",
            f"`{text}` is not a time",
            help="write a whole number, or e.g. 2026-01-31T12:00:00Z",
        ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _read(content: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()
