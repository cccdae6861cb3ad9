"""The central manager (NEXT, DEBS 2009, section 4.1): it takes queries, places them on nodes, feeds
nodes with events, keeps statistics, and hands matches to sink proxies.

All that happens is in the journal, in the order in which it happened. A query's coming and going is
done and then written down; a batch of events is written down before (it is kept) and after (it is
done). A manager that was killed goes on from its last checkpoint: it does again what the journal
tells, throwing away the matches of batches that were done, and the batch that was under way leaves
the same files again. So nothing is lost and nothing comes twice.

One thread drives a manager. Where it waits for a node or a proxy it calls `attend`, which may look
at the manager, but not change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.manager.attending import Attend, Interrupted, attend_nobody
from cepheid.manager.change_times import effective_time, told_time
from cepheid.manager.delivering import deliver_batch
from cepheid.manager.durable import SUM
from cepheid.manager.entries import Entries, Entry
from cepheid.manager.feeding import Fed, begin_batch, finish_batch
from cepheid.manager.query_load import submitted_operators
from cepheid.manager.registered_sink import Folders, prepared_target, target_of
from cepheid.manager.setting import Setting
from cepheid.manager.sink_proxies import SinkProxies
from cepheid.manager.state_folder import Checkpoint, StateFolder
from cepheid.manager.stream_progress import StreamProgress
from cepheid.manager.supervised_node import Question, SupervisedNode
from cepheid.manager.wire import Frame, error_as_json
from cepheid.model.diagnostics import Diagnostic, did_you_mean
from cepheid.model.errors import CepheidError, DataError, QueryError
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.planner.prepare import time_domain


class Manager:
    """Queries, nodes and sink proxies over the state in a folder."""

    def __init__(self, folder: StateFolder, setting: Setting) -> None:
        """Know what the journal tells; `recover` starts nodes and proxies, and comes next."""
        self.attend: Attend = attend_nobody
        self.setting = setting
        self.options = make_options(setting.options)
        self.entries = Entries()
        self.progress = StreamProgress(self.options)
        self.placement = FusedPlacement(setting.nodes, setting.sinks, setting.strategy)
        self.sinks = SinkProxies(setting.out, setting.sinks, self._attend)
        self.nodes = [
            SupervisedNode(n, setting.options, self._attend) for n in range(setting.nodes)
        ]
        self.schema: pa.Schema | None = None
        self.files: dict[str, Mapping[str, Any]] = {}
        self.changed_files: set[str] = set()
        self.trouble: CepheidError | None = None
        self.to_do_again = 0
        self._folder = folder
        self._journal = folder.journal
        self._taken = 0
        self._done = 0
        self._has_begun = False
        self._is_broken_off = False
        self._delivers: int | None = None
        self._since_checkpoint = 0
        self._estimated_from: str | None = None
        self._read_journal()

    def _attend(self, *, may_interrupt: bool) -> None:
        self.attend(may_interrupt=may_interrupt)

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
        with prepared_target(target, self._taken_paths(), self._folders):
            self._change(record)
        self.placement.put(chosen, place, operators)
        return self.entries.by_name[chosen], warnings

    @property
    def _folders(self) -> Folders:
        events, out = self.setting.events.resolve(), self.setting.out.resolve()
        return Folders(events, self._folder.path.resolve(), out)

    def _taken_paths(self) -> dict[str, str]:
        """The paths of sinks to which something may still come, and how to get round each."""
        found: dict[str, str] = {}
        for name, route in self.entries.routes.items():
            path = route.target.path
            if path is None or route.is_over(self.progress.watermark):
                continue
            found[path] = "give each sink a file of its own"
            if route.is_stopped and self.schema is not None and route.until is not None:
                free = self.progress.passes(route.until, self.schema)
                found[path] += (
                    f"; matches of a stopped query may still come: `{name}` frees the file when "
                    f"an event of {self._told(free)} or later has been seen"
                )
        return found

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
        """Stop a query for good.

        One that was stopped already, and holds up a batch by what it sees before its end, is
        dropped: it finds nothing more.
        """
        if self._is_held_up and self.entries.is_ending(name):
            self._change({"op": "drop", "name": name, "when": _now()})
            return
        self.entries.known(name)
        self._change({"op": "remove", "name": name, "at": self._effective(at), "when": _now()})
        self.placement.drop(name)

    def _change(self, record: Mapping[str, Any]) -> None:
        """Do it on the query's node, then write it down: what was not done is not told again."""
        self._ask_node(record, self.entries)
        self._journal.append(record)
        self.entries.apply(record)
        self.trouble = None  # a batch that could not be done may be possible now

    @property
    def _is_held_up(self) -> bool:
        return self.trouble is not None or self._is_broken_off

    def _ask_node(self, record: Mapping[str, Any], entries: Entries) -> None:
        """Have it done on the query's node; `entries` are the queries as they were before it."""
        if record["op"] == "drop":
            for each in self.nodes:  # which of them had it is forgotten
                each.ask(partial(Frame, {"do": "drop", "name": record["name"]}))
            return
        question = self._question(record, entries)
        if question is not None:
            is_new = record["op"] == "add"
            node = int(record["node"]) if is_new else entries.known(record["name"]).place.node
            self.nodes[node].ask(question)

    def _question(self, record: Mapping[str, Any], entries: Entries) -> Question | None:
        """What a node is asked for a record; a query that failed is on no node any more."""
        if record["op"] == "add":
            statistics = None if "statistics" in self.setting.options else self.progress.news()
            asked = {**record, "do": "add", "statistics": statistics}
        elif entries.known(record["name"]).problem is not None:
            return None
        else:
            do = "remove" if record["op"] == "fail" else record["op"]
            asked = {"do": do, "name": record["name"], "at": record["at"]}
        return partial(Frame, asked)

    def _effective(self, at: str | int | None) -> int | None:
        """From when on a change counts."""
        return effective_time(at, self.progress.latest, self._time_type)

    def _told(self, time: int) -> str:
        return told_time(time, self._time_type)

    @property
    def _time_type(self) -> pa.DataType | None:
        return None if self.schema is None else self.schema.field(self.options.end_column).type

    def _refuse_sources(self, compiled: CompiledQuery) -> None:
        if compiled.program.catalogue.sources:
            raise QueryError.of(
                "sources-not-taken",
                "the text registers sources, and a manager's events come from its folder",
                help="leave the registrations out; the type column names the source of an event",
            )

    def learn_sharing(self) -> None:
        """Ask the nodes what their queries share; not while one of them is at work."""
        for node in self.nodes:
            node.learn_sharing()

    def shares_with(self, entry: Entry) -> list[str]:
        """The running queries with which one has something in common that its node does once."""
        known, running = self.entries.by_name, "running"
        names = self.nodes[entry.place.node].facts.sharing.get(entry.name, ())
        if entry.state != running:
            return []
        return [name for name in names if name in known and known[name].state == running]

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

        Raises what a node has to say against the batch; then it waits until a query is stopped. Or
        raises that it was interrupted; then all is as if it had not been begun.
        """
        number = self._done
        mark = self.progress.mark()
        try:
            # What was delivered before a kill must come out the same: no order goes before it.
            fed = self._feed(number, may_interrupt=number != self._delivers)
        except (CepheidError, Interrupted) as problem:
            self.progress.go_back(mark)
            self.trouble = problem if isinstance(problem, CepheidError) else None
            self._is_broken_off = self.trouble is None
            raise
        self._is_broken_off = False
        self._deliver(number, fed)
        self._done += 1
        self._since_checkpoint += 1
        self._estimate_anew()
        return sum(fed.counts.values())

    def _deliver(self, number: int, fed: Fed) -> None:
        if fed.tables and number != self._delivers:
            self._journal.append({"op": "delivers", "batch": number})
            self._delivers = number
        ends = deliver_batch(
            number, fed.tables, self.entries, self.sinks, self._journal, self.setting
        )
        record = {"op": "done", "batch": number, "matches": fed.counts, "ends": ends}
        self._journal.append(record)
        self.entries.apply(record)

    def _feed(self, number: int, *, may_interrupt: bool) -> Fed:
        """What the nodes find in a batch; if one of them cannot do it, all are as before it."""
        batch = _read(self._folder.events(number))
        self._know(batch.schema)
        types = self.progress.see(batch)
        content = partial(self._folder.events, number)
        begin_batch(self.nodes, types, content, self.progress.watermark)
        self.progress.collect(batch)  # while the nodes are at it
        return finish_batch(self.nodes, may_interrupt=may_interrupt)

    def _estimate_anew(self) -> None:
        """Estimate loads anew when much more is known of the events than before."""
        known = self.progress.news()
        if known is self._estimated_from:
            return
        self._estimated_from = known
        for entry in self.entries.by_name.values():
            if entry.state == "running":
                self._count_in(entry)

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

    def _read_journal(self) -> None:
        """What all records come to, for those who ask while the nodes are still to be told."""
        records, placed = self._journal.records, 0
        if records and records[0]["op"] == SUM:
            self._set_sum(records[0])
            placed, records = records[0]["placed"], records[1:]
        for record in records:
            self.entries.apply(record)
            self._count_file(record)
            self._done += record["op"] == "done"
            if record["op"] == "delivers":
                self._delivers = record["batch"]
        self.placement.placed_ever = placed + sum(each["op"] == "add" for each in records)

    def recover(self) -> None:
        """Start the processes, and tell the nodes again what came after the last checkpoint.

        Once is enough.
        """
        if self._has_begun:
            return
        self._has_begun = True
        checkpoint = self._folder.checkpoint()
        before = 0 if checkpoint is None else checkpoint.records
        records = self._journal.records
        past = Entries()
        if records and records[0]["op"] == SUM:
            past.set_json(records[0]["entries"])
            records = records[1:]
        after = max(0, before - self._journal.begun_at)
        for record in records[:after]:
            past.apply(record)
        self.to_do_again = sum(each["op"] == "done" for each in records[after:])
        self._start_nodes(checkpoint)
        for record in records[after:]:
            self._do_again(record, past)
            past.apply(record)
        placed = self.placement.placed_ever
        for entry in self.entries.by_name.values():
            if entry.state == "running":
                self._count_in(entry)
        self.placement.placed_ever = placed
        for path in self.entries.paths(self.progress.watermark):
            self.sinks.forget_drafts(Path(path))
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

    def _do_again(self, record: Mapping[str, Any], past: Entries) -> None:
        match record["op"]:
            case "add" | "pause" | "resume" | "remove" | "fail" | "drop":
                self._ask_node(record, past)
            case "done":
                self._schema_again(record["batch"])
                self._feed(record["batch"], may_interrupt=False)  # what it finds was delivered
                self._since_checkpoint += 1
                self.to_do_again -= 1
            case _:
                pass

    def _schema_again(self, number: int) -> None:
        """Queries that do not fit were found out before, and stand so in the journal."""
        if self.schema is None:
            self.schema = _read(self._folder.events(number)).schema


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
