"""The plans the paper compares, as plan options; each constructs every sequence it finds.

Output is not factorised in any of them: the comparison is of ways to find sequences, and all write
the same ones.
"""

from __future__ import annotations

Plan = dict[str, object]

BASIC = "Basic (NFA)"
AIS = "AIS"
PAIS_SELECTION = "PAIS + Selection"
MULTI_PAIS = "Multi-PAIS"
DYNAMIC = "Dynamic Filtering"
COMBINED = "combined key"


def plan(**options: object) -> Plan:
    """Plan options with flat output."""
    return {"factorised": False, **options}


def basic() -> Plan:
    """Section 3.2: one run-time stack, every event a cell, a search back over the window."""
    return plan(scan="nfa")


def ais() -> Plan:
    """Section 4.1: one stack per state, no partitions."""
    return plan(partition="none")


def pais_selection() -> Plan:
    """Section 4.2.1: stacks partitioned by attr1, all other tests on complete sequences."""
    return plan(partition="attr1", predicates="selection")


def multi_pais() -> Plan:
    """Section 4.2.2, eager: stacks for each attribute, intersected in the scan."""
    return plan(scan="multi")


def dynamic() -> Plan:
    """Section 4.2.2, dynamic filtering: stacks partitioned by attr1, attr2 tested on the way."""
    return plan(partition="attr1")


def combined() -> Plan:
    """What cepheid does by itself: both attributes as one key."""
    return plan(partition="all")
