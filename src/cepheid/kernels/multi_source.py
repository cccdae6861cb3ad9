"""Source text of the Multi-PAIS kernel: stacks partitioned by each attribute (SASE section 4.2.2).

State s keeps one ring of entries. An entry is chained once per equivalence attribute f, among the
entries with the same value of it (`h{s}_{f}`, `prev{s}_{f}`), and points for each of them to the
newest entry of the state before (`rip{s}_{f}`). An event moves on to state s only if some entry of
state s-1 lies in its stacks of all attributes: the stacks are intersected, newest first. `mst` is
the latest possible first-event time of a path through such common entries.

Construction walks the stacks of the first attribute alone. These also lead to entries that differ
in another attribute, so each sequence built is checked again: the encoding is lossy, and cheaper
plans exist. This kernel is there for the paper's comparison. It stops and resumes as the one in
`sequence_source` does. Its twin is `tests/oracle/denotation.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.kernels.kernel_text import KernelText
from cepheid.kernels.sequence_shape import (
    COUNTERS,
    DONE,
    OUTPUT_FULL,
    RING_FULL,
    SequenceShape,
)


@dataclass(frozen=True, slots=True)
class MultiShape:
    """A sequence and the key arrays of its equivalence attributes.

    `families[f][s]`: which key array holds attribute f of an event at state s.
    """

    sequence: SequenceShape
    families: tuple[tuple[int, ...], ...]

    @property
    def key_arrays(self) -> int:
        """How many key arrays the kernel reads."""
        return max(group for family in self.families for group in family) + 1

    def entry_fields(self, state: int) -> tuple[tuple[str, str], ...]:
        """Name and dtype of the arrays of a state's ring."""
        fields = [(f"t{state}", "int64"), (f"row{state}", "int64")]
        if state:
            fields.append((f"mst{state}", "int64"))
        for f in range(len(self.families)):
            fields += [(f"prev{state}_{f}", "int64"), (f"key{state}_{f}", "int64")]
            if state:
                fields.append((f"rip{state}_{f}", "int64"))
        columns = self.sequence.entry_columns[state]
        fields += [(f"e{c}_{state}", self.sequence.columns[c]) for c in columns]
        return tuple(fields)

    def heads(self, state: int) -> tuple[str, ...]:
        """The arrays from key code to newest entry, one per attribute."""
        return tuple(f"h{state}_{f}" for f in range(len(self.families)))

    def arguments(self) -> tuple[str, ...]:
        """The kernel's arguments, in order."""
        names = ["begin", "end", "emit", "W", "prune_to", "control", "counters"]
        names += ["mask", "t", "row", "ci", "cf"]
        names += [f"k{g}" for g in range(self.key_arrays)]
        names += [f"c{c}" for c in range(len(self.sequence.columns))]
        for state in range(self.sequence.length - 1):
            names += self.heads(state)
            names += [name for name, _ in self.entry_fields(state)]
        names += [f"out{s}" for s in range(self.sequence.length)]
        return tuple(names)


def multi_source(shape: MultiShape) -> str:
    """The text of a module with one compiled function `kernel` for the shape."""
    w = KernelText()
    sequence = shape.sequence
    last = sequence.length - 1
    for s in range(last):
        w(f"n{s} = control[{2 * s}]")
        w(f"tail{s} = control[{2 * s + 1}]")
        w(f"m{s} = t{s}.shape[0] - 1")
    w("nout = 0")
    for counter in COUNTERS:
        w(f"count_{counter} = 0")
    with w.under("for i in range(begin, end):"):
        w("mk = mask[i]")
        w("ti = t[i]")
        w("low = ti - W")
        if sequence.counting:
            w("edges_before = count_edges")
            w("sequences_before = count_sequences")
        for s in range(last):
            _make_room(w, sequence, s)
        _accept(w, shape)
        for s in range(last - 1, -1, -1):  # so that an event never precedes itself
            _push(w, shape, s)
    _save(w, sequence)
    w(f"return end, nout, 0, {DONE}")
    return w.function("kernel", shape.arguments())


def _save(w: KernelText, sequence: SequenceShape) -> None:
    for s in range(sequence.length - 1):
        w(f"control[{2 * s}] = n{s}")
        w(f"control[{2 * s + 1}] = tail{s}")
    if sequence.counting:
        for slot, counter in enumerate(COUNTERS):
            w(f"counters[{slot}] += count_{counter}")


def _make_room(w: KernelText, sequence: SequenceShape, s: int) -> None:
    with w.under(f"if n{s} - tail{s} > m{s}:"):
        if sequence.window_in_scan:
            w("floor = min(low, prune_to)")
            with w.under(f"while tail{s} < n{s} and t{s}[tail{s} & m{s}] <= floor:"):
                w(f"tail{s} += 1")
        with w.under(f"if n{s} - tail{s} > m{s}:"):
            _save(w, sequence)
            w(f"return i, nout, 0, {RING_FULL + s}")


def _matches_state(sequence: SequenceShape, s: int) -> str:
    test = f"(mk >> {s}) & 1"
    return f"{test} and {sequence.simple[s]}" if sequence.simple[s] else test


def _intersect(w: KernelText, shape: MultiShape, s: int) -> None:
    """`common`: the newest entry of state s in the event's stacks of all attributes, or -1.

    Leaves in `r{f}` the newest entry of each stack that lies before the event.
    """
    sequence, count = shape.sequence, len(shape.families)
    for f, family in enumerate(shape.families):
        w(f"r{f} = h{s}_{f}[k{family[s + 1]}[i]]")
        if not sequence.arrival_order:  # events of one time do not precede each other
            with w.under(f"while r{f} >= tail{s} and t{s}[r{f} & m{s}] >= ti:"):
                w(f"r{f} = prev{s}_{f}[r{f} & m{s}]")
        w(f"a{f} = r{f}")
    every = [f"a{f}" for f in range(count)]
    w("common = -1")
    with w.under("while True:"):
        w(f"least = {every[0] if count == 1 else 'min(' + ', '.join(every) + ')'}")
        outside = f" or t{s}[least & m{s}] <= low" if sequence.window_in_scan else ""
        with w.under(f"if least < tail{s}{outside}:"):
            w("break")
        with w.under(f"if {' and '.join(f'{a} == least' for a in every)}:"):
            w("common = least")
            w("break")
        for f, a in enumerate(every):
            with w.under(f"while {a} > least:"):
                w(f"{a} = prev{s}_{f}[{a} & m{s}]")
                if sequence.counting:
                    w("count_edges += 1")


def _may_follow(sequence: SequenceShape, s: int) -> str:
    first = f"mst{s}" if s else "t0"
    window = f" and {first}[common & m{s}] > low" if sequence.window_in_scan else ""
    return f"if common >= 0{window}:"


def _push(w: KernelText, shape: MultiShape, s: int) -> None:
    sequence = shape.sequence
    depth = w.depth
    w.open(f"if {_matches_state(sequence, s)}:")
    if s:
        _intersect(w, shape, s - 1)
        w.open(_may_follow(sequence, s - 1))
    w(f"x = n{s} & m{s}")
    w(f"t{s}[x] = ti")
    w(f"row{s}[x] = row[i]")
    for f, family in enumerate(shape.families):
        w(f"k = k{family[s]}[i]")
        w(f"key{s}_{f}[x] = k")
        w(f"prev{s}_{f}[x] = h{s}_{f}[k]")
        w(f"h{s}_{f}[k] = n{s}")
        if s:
            w(f"rip{s}_{f}[x] = r{f}")
    if s:
        first = f"mst{s - 1}" if s > 1 else "t0"
        w(f"mst{s}[x] = {first}[common & m{s - 1}]")
    for c in sequence.entry_columns[s]:
        w(f"e{c}_{s}[x] = c{c}[i]")
    w(f"n{s} += 1")
    if sequence.counting:
        w("count_pushed += 1")
    w.close_to(depth)


def _accept(w: KernelText, shape: MultiShape) -> None:
    sequence = shape.sequence
    last = sequence.length - 1
    depth = w.depth
    w.open(f"if emit and {_matches_state(sequence, last)}:")
    w("first_out = nout")
    _intersect(w, shape, last - 1)
    w.open(_may_follow(sequence, last - 1))
    for s in range(last - 1, -1, -1):
        w(f"p{s} = r0" if s == last - 1 else f"p{s} = rip{s + 1}_0[q{s + 1}]")
        w.open(f"while p{s} >= tail{s}:")
        w(f"q{s} = p{s} & m{s}")
        if sequence.window_in_construction:
            with w.under(f"if t{s}[q{s}] <= low:"):
                w("break")
        w(f"p{s} = prev{s}_0[q{s}]")
        if sequence.counting:
            w("count_edges += 1")
        for test in sequence.joint[s]:
            with w.under(f"if not ({test}):"):
                w("continue")
    _emit(w, shape)
    w.close_to(depth)


def _emit(w: KernelText, shape: MultiShape) -> None:
    sequence = shape.sequence
    last = sequence.length - 1
    if sequence.counting:
        w("count_sequences += 1")
    for f, family in list(enumerate(shape.families))[1:]:
        same = " and ".join(f"key{s}_{f}[q{s}] == k{family[last]}[i]" for s in range(last))
        with w.under(f"if not ({same}):"):
            w("continue")
    for test in sequence.joint[last]:  # the tests of a Selection operator on top of construction
        with w.under(f"if not ({test}):"):
            w("continue")
    if not sequence.window_in_construction:
        with w.under("if t0[q0] <= low:"):
            w("continue")
    with w.under("if nout >= out0.shape[0]:"):
        if sequence.counting:  # the event will be looked at anew, and counted then
            w("count_edges = edges_before")
            w("count_sequences = sequences_before")
        _save(w, sequence)
        w(f"return i, first_out, 0, {OUTPUT_FULL}")
    for s in range(last):
        w(f"out{s}[nout] = row{s}[q{s}]")
    w(f"out{last}[nout] = row[i]")
    w("nout += 1")
