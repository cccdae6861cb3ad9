"""Source text of the Basic sequence kernel: an NFA with a run-time stack (SASE section 3.2).

Every event of the stream adds a cell to one stack. A cell holds the active instances of states
0..L-2 (state s: events 0 to s of a match are found). An instance has up to two predecessors, and
both lie in known cells: the same state in the cell below (the self-loop on any event), and, if this
event made the transition, the state before it in the newest earlier cell (`before`). So one bit per
state, `forward`, is all that has to be kept of the pointers. `mst` is the latest possible
first-event time of a path to the instance; an instance whose `mst` has left the window is not
active (windows in SS), and NEVER says that it never was.

On an accepting event a single depth-first search follows the predecessors back to the oldest event
in the window and lists, for each state, the cells whose event made the transition; the matches are
the combinations of these lists. The search costs O(L W) whatever it finds: this is what Active
Instance Stacks avoid, and why this kernel exists beside them. It stops and resumes as the one in
`sequence_source` does. Its twin is `tests/oracle/denotation.py`.
"""

from __future__ import annotations

from cepheid.kernels.kernel_text import KernelText
from cepheid.kernels.sequence_shape import (
    COUNTERS,
    DONE,
    OUTPUT_FULL,
    RING_FULL,
    SequenceShape,
)

NEVER = -(2**63) + 1  # a literal that negates without overflow


def cell_fields(shape: SequenceShape) -> tuple[tuple[str, str], ...]:
    """Name and dtype of the arrays of the run-time stack."""
    fields = [("cell_t", "int64"), ("cell_row", "int64"), ("before", "int64"), ("forward", "int64")]
    fields += [(f"mst{s}", "int64") for s in range(shape.length - 1)]
    columns = sorted({c for s in range(shape.length - 1) for c in shape.entry_columns[s]})
    fields += [(f"e{c}", shape.columns[c]) for c in columns]
    return tuple(fields)


def search_lists(shape: SequenceShape) -> tuple[str, ...]:
    """The lists the search fills; each has room for every cell."""
    states = range(shape.length - 1)
    return (*(f"found{s}" for s in states), *(f"start{s}" for s in states))


def nfa_arguments(shape: SequenceShape) -> tuple[str, ...]:
    """The kernel's arguments, in order."""
    names = ["begin", "end", "emit", "W", "prune_to", "control", "counters"]
    names += ["mask", "t", "row", "ci", "cf"]
    names += [f"c{c}" for c in range(len(shape.columns))]
    names += [name for name, _ in cell_fields(shape)]
    names += search_lists(shape)
    names += [f"out{s}" for s in range(shape.length)]
    return tuple(names)


def nfa_source(shape: SequenceShape) -> str:
    """The text of a module with one compiled function `kernel` for the shape."""
    w = KernelText()
    w("n = control[0]")
    w("tail = control[1]")
    w("m = cell_t.shape[0] - 1")
    w("nout = 0")
    for counter in COUNTERS:
        w(f"count_{counter} = 0")
    for s in range(shape.length - 1):
        for c in shape.entry_columns[s]:
            w(f"e{c}_{s} = e{c}")  # predicates name the column of a state; here all share the cells
    with w.under("for i in range(begin, end):"):
        w("mk = mask[i]")
        w("ti = t[i]")
        w("low = ti - W")
        if shape.counting:
            w("edges_before = count_edges")
            w("sequences_before = count_sequences")
        if shape.length > 1:
            _make_room(w, shape)
            w("top = n - 1")
            w("earlier = top")
            if not shape.arrival_order:  # events of one time do not precede each other
                with w.under("if top >= tail and cell_t[top & m] >= ti:"):
                    w("earlier = before[top & m]")
        _accept(w, shape)
        if shape.length > 1:
            _push_cell(w, shape)
    _save(w, shape)
    w(f"return end, nout, 0, {DONE}")
    return w.function("kernel", nfa_arguments(shape))


def _save(w: KernelText, shape: SequenceShape) -> None:
    w("control[0] = n")
    w("control[1] = tail")
    if shape.counting:
        for slot, counter in enumerate(COUNTERS):
            w(f"counters[{slot}] += count_{counter}")


def _make_room(w: KernelText, shape: SequenceShape) -> None:
    with w.under("if n - tail > m:"):
        if shape.window_in_scan:
            w("floor = min(low, prune_to)")
            with w.under("while tail < n and cell_t[tail & m] <= floor:"):
                w("tail += 1")
        with w.under("if n - tail > m:"):
            _save(w, shape)
            w(f"return i, nout, 0, {RING_FULL}")


def _matches_state(shape: SequenceShape, state: int) -> str:
    test = f"(mk >> {state}) & 1"
    return f"{test} and {shape.simple[state]}" if shape.simple[state] else test


def _is_active(shape: SequenceShape, state: int, cell: str) -> str:
    oldest = "low" if shape.window_in_scan else str(NEVER)
    return f"mst{state}[{cell}] > {oldest}"


def _push_cell(w: KernelText, shape: SequenceShape) -> None:
    """The next set of active states, and which of them this event led to."""
    w("x = n & m")
    w("moved = 0")
    for s in range(shape.length - 1):
        w(f"reached = {NEVER}")
        with w.under(f"if top >= tail and {_is_active(shape, s, 'top & m')}:"):
            w(f"reached = mst{s}[top & m]")  # the self-loop
        with w.under(f"if {_matches_state(shape, s)}:"):
            if s == 0:
                w("reached = ti")
                w("moved |= 1")
            else:
                active = _is_active(shape, s - 1, "earlier & m")
                with w.under(f"if earlier >= tail and {active}:"):
                    w(f"reached = max(reached, mst{s - 1}[earlier & m])")
                    w(f"moved |= {1 << s}")
        w(f"mst{s}[x] = reached")
        if shape.counting:
            w(f"count_pushed += reached != {NEVER}")
    w("forward[x] = moved")
    w("cell_t[x] = ti")
    w("cell_row[x] = row[i]")
    w("before[x] = earlier")
    for name, _ in cell_fields(shape):
        if name.startswith("e"):
            w(f"{name}[x] = c{name[1:]}[i]")
    w("n += 1")


def _accept(w: KernelText, shape: SequenceShape) -> None:
    last = shape.length - 1
    depth = w.depth
    w.open(f"if emit and {_matches_state(shape, last)}:")
    w("first_out = nout")
    if last == 0:
        _emit(w, shape)
        w.close_to(depth)
        return
    w.open(f"if earlier >= tail and {_is_active(shape, last - 1, 'earlier & m')}:")
    w("p = earlier")
    for s in range(last - 1, -1, -1):
        _search(w, shape, s)
        if s:
            w.open(f"if listed{s}:")
            w(f"p = before[found{s}[0] & m]")
    for s in range(last - 1, -1, -1):
        begin = "0" if s == last - 1 else f"start{s + 1}[j{s + 1}]"
        w.open(f"for j{s} in range({begin}, listed{s}):")
        w(f"q{s} = found{s}[j{s}] & m")
        if shape.counting:
            w("count_edges += 1")
        for test in shape.joint[s]:
            with w.under(f"if not ({test}):"):
                w("continue")
    _emit(w, shape)
    w.close_to(depth)


def _search(w: KernelText, shape: SequenceShape, s: int) -> None:
    """Follow state s from cell p down its self-loops; list the cells that moved to it.

    `start` of a cell listed for the state above says where in this list its predecessors begin.
    """
    above = s < shape.length - 2
    w(f"listed{s} = 0")
    if above:
        w("upper = 0")
    with w.under("while p >= tail:"):
        w("q = p & m")
        stop = [f"not ({_is_active(shape, s, 'q')})"]
        if shape.window_in_construction:
            stop.append("cell_t[q] <= low")
        with w.under(f"if {' or '.join(stop)}:"):
            w("break")
        if above:
            with w.under(f"while upper < listed{s + 1} and before[found{s + 1}[upper] & m] >= p:"):
                w(f"start{s + 1}[upper] = listed{s}")
                w("upper += 1")
        with w.under(f"if (forward[q] >> {s}) & 1:"):
            w(f"found{s}[listed{s}] = p")
            w(f"listed{s} += 1")
            if shape.counting:
                w("count_edges += 1")
        if shape.counting:
            w("count_edges += 1")
        w("p -= 1")
    if above:
        with w.under(f"while upper < listed{s + 1}:"):
            w(f"start{s + 1}[upper] = listed{s}")
            w("upper += 1")


def _emit(w: KernelText, shape: SequenceShape) -> None:
    last = shape.length - 1
    if shape.counting:
        w("count_sequences += 1")
    for test in shape.joint[last]:  # the tests of a Selection operator on top of construction
        with w.under(f"if not ({test}):"):
            w("continue")
    if last and not shape.window_in_construction:
        with w.under("if cell_t[q0] <= low:"):
            w("continue")
    with w.under("if nout >= out0.shape[0]:"):
        if shape.counting:  # the event will be looked at anew, and counted then
            w("count_edges = edges_before")
            w("count_sequences = sequences_before")
        _save(w, shape)
        w(f"return i, first_out, 0, {OUTPUT_FULL}")
    for s in range(last):
        w(f"out{s}[nout] = cell_row[q{s}]")
    w(f"out{last}[nout] = row[i]")
    w("nout += 1")
