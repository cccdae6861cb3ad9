"""The manager's door lets in nobody without the token, and nothing too large."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import pytest

from cepheid.manager.client import ask_manager
from cepheid.manager.durable import write_whole
from cepheid.manager.server import LARGEST_BODY, ManagerServer
from cepheid.model.diagnostics import Diagnostic, SourceText, Span
from cepheid.model.errors import EnvironmentProblem, QueryError

TOKEN = "right"


def answer(request, patience):
    if request["do"] == "fail":
        text = SourceText("EVENT A", "a.sase")
        raise QueryError(Diagnostic("bad", "it is bad", Span(6, 7), "here", source=text))
    return {"asked": request["do"]}


@pytest.fixture(scope="module")
def server():
    with ManagerServer(0, TOKEN, answer) as served:
        threading.Thread(target=served.serve_forever, args=(0.05,), daemon=True).start()
        yield served
        served.shutdown()


def post(server, body=b'{"do": "list"}', path="/", method="POST", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    usual = {"Authorization": f"Bearer {TOKEN}"}
    connection.request(method, path, body, {**usual, **headers})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"


def test_who_has_the_token_is_answered(server):
    status, content = post(server)
    assert (status, json.loads(content)) == (200, {"answer": {"asked": "list"}})


@pytest.mark.parametrize(
    "shown", ["", "Bearer ", "Bearer wrong", "Bearer rightt", "Bearer righ\xe9"]
)
def test_a_wrong_token_is_refused(server, shown):
    assert post(server, Authorization=shown)[0] == 401


def test_another_host_name_is_refused(server):
    """A page in a browser whose name was made to mean this machine."""
    assert post(server, Host="evil.example")[0] == 403


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        head = (
            f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: {LARGEST_BODY + 1}\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert b" 413 " in connection.recv(1000)


@pytest.mark.parametrize("length", ["", "x", "-1", "9" * 30, "٣"])
def test_a_body_without_an_honest_length_is_refused(server, length):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        head = (
            f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n"
        )
        connection.sendall(head.encode())
        status = int(connection.recv(1000).split()[1])
    assert status in (411, 413)


def test_chunks_are_refused(server):
    assert post(server, **{"Transfer-Encoding": "chunked"})[0] == 411


def test_a_head_that_is_too_large_is_refused(server):
    assert post(server, **{"X-Much": "x" * 20_000})[0] == 431


@pytest.mark.parametrize("path", ["/token", "/../journal.jsonl", "/?x=1", "/x/"])
def test_there_are_no_files_behind_it(server, path):
    assert post(server, path=path)[0] == 404


def test_other_methods_are_not_known(server):
    assert post(server, method="GET")[0] == 501


@pytest.mark.parametrize("body", [b"nonsense", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(server, body):
    assert post(server, body)[0] == 400


def test_an_object_without_a_request_is_refused(server):
    assert post(server, b"{}")[0] in (400, 500)


def test_an_error_reaches_the_client_with_its_caret(server, tmp_path):
    write_whole(tmp_path / "token", TOKEN.encode())
    write_whole(tmp_path / "manager.json", json.dumps({"port": server.port}).encode())
    with pytest.raises(QueryError) as told:
        ask_manager(tmp_path, {"do": "fail"})
    assert str(told.value).splitlines() == [
        "error[bad]: it is bad",
        " --> a.sase:1:7",
        "  |",
        "1 | EVENT A",
        "  |       ^ here",
    ]


def test_a_client_with_an_old_token_is_told_so(server, tmp_path):
    write_whole(tmp_path / "token", b"of yesterday")
    write_whole(tmp_path / "manager.json", json.dumps({"port": server.port}).encode())
    with pytest.raises(EnvironmentProblem, match="token is wrong"):
        ask_manager(tmp_path, {"do": "list"})


def test_a_client_without_a_manager_is_told_what_to_do(tmp_path):
    with pytest.raises(EnvironmentProblem, match="no manager runs") as told:
        ask_manager(tmp_path, {"do": "list"})
    assert "cepheid workload start" in str(told.value)


def test_a_manager_that_was_killed_is_no_manager(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write_whole(tmp_path / "token", b"x")
    write_whole(tmp_path / "manager.json", json.dumps({"port": port}).encode())
    with pytest.raises(EnvironmentProblem, match="no manager runs"):
        ask_manager(tmp_path, {"do": "list"})


def test_many_that_say_nothing_keep_nobody_out(server):
    """The oldest of them makes room."""
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    try:
        for _ in range(40):
            assert post(server)[0] == 200
    finally:
        for each in silent:
            each.close()


@pytest.mark.slow
def test_a_byte_now_and_then_does_not_hold_a_connection(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=1) as connection:
        begin = time.monotonic()
        while time.monotonic() - begin < 8:
            try:
                connection.sendall(b"X")
            except OSError:
                break
            time.sleep(0.2)
        assert 2 < time.monotonic() - begin < 6
