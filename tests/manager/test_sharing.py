"""`list` and `explain` tell the same of what queries share: what their node does once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cepheid.cli.workload_sharing import workload_of
from cepheid.manager.tables import list_of, queries_of
from tests.manager.test_manager import fed

QUERIES = {
    "abroad": r"SELECT * FROM TRAVEL t; (SMALL s; LARGE p) WHERE FILTER(s.card = p.card)",
    "probe": r"SELECT * FROM LOGIN l; (SMALL s; LARGE p) WHERE FILTER(s.card = p.card)",
    "quiet": r"SELECT * FROM LOGIN l; (LARGE p \ ALARM a)",
    "bought": "EVENT SEQ(SHELF x, COUNTER y, EXIT z) WHERE [tag] WITHIN 500",
    "stolen": "EVENT SEQ(SHELF x, !(COUNTER n), EXIT z) WHERE [tag] WITHIN 500",
    "z": "EVENT SEQ(A x, B y) WITHIN 10",
    "again": "EVENT SEQ(A x, B y) WITHIN 10",
}
EVENTS = pa.table({"type": ["A", "B"], "ts": [1, 2], "card": [1, 1], "tag": [1, 1]})


def listed(manager: Any) -> dict[str, set[str]]:
    manager.learn_sharing()
    return {each["name"]: set(each["shares_with"]) for each in list_of(manager)["queries"]}


def explained(manager: Any) -> dict[str, set[str]]:
    """By the graph that `explain` tells and draws."""
    answer = queries_of(manager)
    found: dict[str, set[str]] = {name: set() for name in manager.entries.by_name}
    for node in range(manager.setting.nodes):
        for graph in workload_of(answer, node).graph(manager.schema):
            for each in graph.nodes:
                if each.kind != "query":
                    for name in each.queries:
                        found[name] |= set(each.queries) - {name}
    return found


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_list_and_explain_agree(managed, nodes):
    manager = managed(nodes=nodes)
    for name, text in QUERIES.items():
        manager.submit(text, name=name)
    before = listed(manager)
    assert before == explained(manager)
    assert "again" in before["z"]
    fed(manager, EVENTS, "1.csv")
    assert listed(manager) == explained(manager)
    manager.remove("again")
    assert "again" not in listed(manager)["z"]
    assert listed(manager) == explained(manager)
    assert sum(node.facts.restarts for node in manager.nodes) == 0
