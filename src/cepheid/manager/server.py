"""The manager's door: HTTP on this machine alone, for those who can read its token.

The head of a request is read first, within a few seconds and a few KiB. Where it comes from, its
token and the length of its body are checked before anything of the body is read. Who has not shown
the token yet makes room for newcomers when all connections are taken, so that nobody can keep the
owner out by saying nothing. There are no files behind the door, only requests of a few kinds.
"""

from __future__ import annotations

import hmac
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as Impatient
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cepheid.languages.limits import LARGEST_TEXT
from cepheid.manager.wire import HOST, error_as_json
from cepheid.model.errors import CepheidError, InternalError

LARGEST_BODY = 8 * LARGEST_TEXT
"""A text of the largest size, each character written as JSON may write it."""
LARGEST_HEAD = 16 << 10
MOST_CONNECTIONS = 32
_SILENCE = 10.0
"""Seconds within which a client must say the next thing."""
_HEAD = 3.0
"""Seconds within which a client must have shown its token."""
_PATIENCE = 60.0
"""Seconds that a request may wait for the batch under way."""

Ask = Callable[[Mapping[str, Any], float], Any]


class ManagerServer(ThreadingHTTPServer):
    """Listens; each request is handed to the manager's own thread."""

    daemon_threads = False  # an answer that is on its way still arrives
    request_queue_size = 4 * MOST_CONNECTIONS

    def __init__(self, port: int, token: str, ask: Ask) -> None:
        """`port` 0 takes any that is free."""
        self.token = token.encode()
        self.ask = ask
        self._open = 0
        self._strangers: dict[socket.socket, float] = {}  # oldest first
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless too many are at it."""
        if self._admit(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def _admit(self, request: socket.socket) -> bool:
        """Whether there is room, or can be made: the oldest stranger goes first."""
        with self._lock:
            if self._open >= MOST_CONNECTIONS:
                if not self._strangers:
                    return False
                self._turn_out(next(iter(self._strangers)))
            self._open += 1
            self._strangers[request] = time.monotonic()
            return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._strangers.pop(request, None)
                self._open -= 1

    def service_actions(self) -> None:
        """Turn out those who have not shown a token in time; called every now and then."""
        now = time.monotonic()
        with self._lock:
            for request, since in list(self._strangers.items()):
                if now - since > _HEAD:
                    self._turn_out(request)

    def trust(self, request: socket.socket) -> None:
        """Who is at the other end has shown the token."""
        with self._lock:
            self._strangers.pop(request, None)

    def _turn_out(self, request: socket.socket) -> None:
        """Its thread reads an end, and goes."""
        del self._strangers[request]
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks off is nobody's problem."""


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class _Handler(BaseHTTPRequestHandler):
    server: ManagerServer
    timeout = _SILENCE
    server_version = "cepheid"
    sys_version = ""

    def do_POST(self) -> None:
        """Answer a request, or say why not."""
        try:
            self._check_origin()
            self.server.trust(self.connection)
            request = self._body()
            self._reply(HTTPStatus.OK, {"answer": self.server.ask(request, _PATIENCE)})
        except _Refused as refused:
            self.close_connection = True
            self._reply(refused.status, {"refused": refused.why})
        except (Impatient, queue.Full):
            busy = "the manager is busy with a batch of events; ask again"
            self._reply(HTTPStatus.SERVICE_UNAVAILABLE, {"refused": busy})
        except CepheidError as problem:
            self._reply(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": error_as_json(problem)})
        except (TypeError, ValueError) as problem:
            self._reply(HTTPStatus.BAD_REQUEST, {"refused": f"not understood: {problem}"})
        except Exception as problem:  # a bug of ours is told as one
            ours = InternalError.of("manager", f"{type(problem).__name__}: {problem}")
            self._reply(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": error_as_json(ours)})

    def _check_origin(self) -> None:
        head = sum(len(name) + len(value) for name, value in self.headers.items())
        if head + len(self.path) > LARGEST_HEAD:
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too large")
        # A page in a browser could be led here under another name, and cannot lie about it.
        host = self.headers.get("Host", "")
        if host not in (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}"):
            raise _Refused(HTTPStatus.FORBIDDEN, "this manager has another name")
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode("utf-8", "replace"), self.server.token):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "the token is wrong")
        if self.path != "/":
            raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _body(self) -> Mapping[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "the body's length is not told")
        if len(length) > 10 or int(length) > LARGEST_BODY:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request is larger than {LARGEST_BODY:,} bytes",
            )
        content = self.rfile.read(int(length))
        try:
            request = json.loads(content)
        except (ValueError, RecursionError):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body is not JSON") from None
        if not isinstance(request, dict):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body is no object")
        return request

    def _reply(self, status: HTTPStatus, answer: Mapping[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        """Nothing: requests are not for the terminal."""
