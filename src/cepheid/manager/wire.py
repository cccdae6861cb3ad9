"""What manager, nodes and clients say to each other: frames of JSON and Arrow, errors as values."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from cepheid.model import errors
from cepheid.model.diagnostics import Diagnostic, SourceText, Span
from cepheid.model.errors import CepheidError, InternalError

HOST = "127.0.0.1"
"""Where the manager listens: nobody on another machine can reach it."""

_LENGTH = struct.Struct(">I")
_LARGEST_HEAD = 64 << 20
_LARGEST_PART = 1 << 36


class Gone(Exception):
    """The other side has closed its end, or died."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: a few words as JSON, and parts of bytes (Arrow IPC, snapshots)."""

    head: Mapping[str, Any]
    parts: Sequence[bytes] = field(default_factory=tuple)


def write_frame(stream: IO[bytes], frame: Frame) -> None:
    """Send a frame: the length of its head, the head, the parts whose lengths the head tells."""
    head = json.dumps({"head": frame.head, "parts": [len(each) for each in frame.parts]}).encode()
    try:
        stream.write(_LENGTH.pack(len(head)))
        stream.write(head)
        for part in frame.parts:
            stream.write(part)
        stream.flush()
    except (OSError, ValueError) as problem:
        raise Gone from problem


def read_frame(stream: IO[bytes]) -> Frame:
    """Receive a frame; `Gone` if there is none, or only a piece of one."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > _LARGEST_HEAD:
        raise Gone
    told = json.loads(_exactly(stream, length))
    lengths = told["parts"]
    if any(not 0 <= each <= _LARGEST_PART for each in lengths):
        raise Gone
    return Frame(told["head"], tuple(_exactly(stream, each) for each in lengths))


def _exactly(stream: IO[bytes], count: int) -> bytes:
    try:
        found = stream.read(count)
    except (OSError, ValueError) as problem:
        raise Gone from problem
    if len(found) < count:
        raise Gone
    return found


def error_as_json(problem: CepheidError) -> dict[str, Any]:
    """An error with all that is needed to show it elsewhere, caret included."""
    return {
        "kind": type(problem).__name__,
        "diagnostics": [diagnostic_as_json(each) for each in problem.diagnostics],
    }


def error_from_json(told: Mapping[str, Any]) -> CepheidError:
    """The error that another process told of."""
    kind = getattr(errors, str(told["kind"]), InternalError)
    if not (isinstance(kind, type) and issubclass(kind, CepheidError)):
        kind = InternalError
    return kind([diagnostic_from_json(each) for each in told["diagnostics"]])


def diagnostic_as_json(found: Diagnostic) -> dict[str, Any]:
    """A diagnostic with the text that its place is in."""
    return {
        "code": found.code,
        "message": found.message,
        "span": None if found.span is None else [found.span.start, found.span.end],
        "label": found.label,
        "notes": list(found.notes),
        "help": found.help,
        "severity": found.severity,
        "source": None if found.source is None else [found.source.text, found.source.name],
    }


def diagnostic_from_json(told: Mapping[str, Any]) -> Diagnostic:
    """The diagnostic that `diagnostic_as_json` wrote."""
    return Diagnostic(
        told["code"],
        told["message"],
        None if told["span"] is None else Span(*told["span"]),
        told["label"],
        tuple(told["notes"]),
        told["help"],
        told["severity"],
        None if told["source"] is None else SourceText(*told["source"]),
    )
