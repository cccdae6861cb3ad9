"""Operators on nodes, or whole queries on every partition of a key: which is cheaper on Spark.

A node of a deployment is a partition id. Operators of different nodes need an exchange between
them; a query with a key needs one exchange of its sources, and then each partition runs all its
operators for the keys it holds. Both are judged by their busiest partition, since a micro-batch is
over when that one is: events handled there plus `exchange` for each event that reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cepheid.planner.operator_graph import Operator
from cepheid.planner.placement import Deployment


class Comparison(NamedTuple):
    """Estimated costs of both, which of them is taken, and why."""

    placed: float
    by_key: float
    takes_placement: bool
    reason: str


def compare_with_key_parallel(
    deployment: Deployment, keys: Sequence[str | None], exchange: float = 1.0
) -> Comparison:
    """Compare a deployment with key-parallel execution of the same queries.

    `keys` names the key of each query in the order of their deployment, None where there is none:
    such a query runs on one partition whole. Events of a key are taken to be spread evenly. On a
    partition too equal sub-trees run once, if the deployment reuses them.

    >>> from cepheid.planner.placement import Source
    >>> deployment = Deployment(2, {"A": Source(1), "B": Source(2)})
    >>> _ = deployment.deploy([Operator(0, "A;B", ("A", "B"), 1.0, 3.0)])
    >>> compare_with_key_parallel(deployment, ["card"]).reason
    'by key: the busiest of 2 partitions handles 3 events against 6 when operators are placed'
    """
    if len(keys) != len(deployment.queries):
        msg = f"{len(deployment.queries)} queries are deployed, {len(keys)} keys are given"
        raise ValueError(msg)
    placed = max(
        load + exchange * received
        for load, received in zip(deployment.loads, deployment.received(), strict=True)
    )
    by_key = 0.0
    for key in dict.fromkeys(keys):
        chosen = [query for query, own in zip(deployment.queries, keys, strict=True) if own == key]
        operators = [operator for query in chosen for operator in query.operators]
        if deployment.strategy == "greedy":
            operators = list({each.canonical: each for each in operators}.values())
        handled = sum(each.cpu for each in operators)
        read = _source_rate(deployment, operators)
        # Without a key the queries share one partition: at worst the busiest.
        by_key += (handled + exchange * read) / (deployment.nodes if key is not None else 1)
    takes_placement = placed < by_key
    keyless = sum(key is None for key in keys)
    reason = (
        f"{'operators placed' if takes_placement else 'by key'}: the busiest of "
        f"{deployment.nodes} partitions handles {min(placed, by_key):g} events against "
        f"{max(placed, by_key):g} "
        + ("by key" if takes_placement else "when operators are placed")
        + (f", where {keyless} queries without a key stay on one" if keyless else "")
    )
    return Comparison(placed, by_key, takes_placement, reason)


def _source_rate(deployment: Deployment, operators: Sequence[Operator]) -> float:
    names = {each for operator in operators for each in operator.operands if isinstance(each, str)}
    return sum(deployment.sources[name].rate for name in names)
