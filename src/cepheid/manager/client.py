"""How other processes of the same user talk to a running manager."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cepheid.manager.wire import HOST, error_from_json
from cepheid.model.errors import EnvironmentProblem

_PATIENCE = 70.0


def ask_manager(state: Path, request: Mapping[str, Any], patience: float = _PATIENCE) -> Any:
    """Ask the manager whose state is in a folder; raises what it says is wrong."""
    try:
        place = json.loads((state / "manager.json").read_text("utf-8"))
        token = (state / "token").read_text("utf-8")
        port = int(place["port"])
    except (OSError, ValueError, KeyError, TypeError):
        raise _no_manager(state) from None
    connection = http.client.HTTPConnection(HOST, port, timeout=patience)
    try:
        connection.request(
            "POST",
            "/",
            json.dumps(request).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        response = connection.getresponse()
        answer = json.loads(response.read())
    except ConnectionRefusedError:
        raise _no_manager(state) from None
    except (OSError, http.client.HTTPException, ValueError) as problem:
        raise EnvironmentProblem.of(
            "manager-silent",
            f"the manager with the state in `{state}` does not answer: {problem or 'no reason'}",
            help="see what it printed, or its log file, and try again",
        ) from None
    finally:
        connection.close()
    if "error" in answer:
        raise error_from_json(answer["error"])
    if "refused" in answer:
        raise EnvironmentProblem.of("manager-refuses", str(answer["refused"]))
    return answer["answer"]


def _no_manager(state: Path) -> EnvironmentProblem:
    return EnvironmentProblem.of(
        "no-manager",
        f"no manager runs with the state in `{state}`",
        help=f"start one: cepheid workload start --state {state}; or name its folder with --state",
    )
