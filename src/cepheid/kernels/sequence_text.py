"""The pieces of which a sequence kernel's text is made: entries, pushes, construction, output.

Which rows they see, and in which order, is for `sequence_source.py` to say.
"""

from __future__ import annotations

from cepheid.kernels.sequence_shape import (
    COUNTERS,
    DONE,
    OUTPUT_FULL,
    RING_FULL,
    Between,
    SequenceShape,
)


class Text:
    """The lines of a function's body, each at its depth."""

    def __init__(self) -> None:
        """An empty body."""
        self.lines: list[str] = []
        self.depth = 1

    def __call__(self, line: str, *, deeper: int = 0) -> None:
        """Add a line; those that follow lie `deeper`."""
        self.lines.append("    " * self.depth + line)
        self.depth += deeper


# Two habits of the text decide its speed. Indices are unsigned, so that no test for a negative
# index is compiled in. Conditions whose parts are a matter of chance are joined before the jump: as
# differences whose signs are and-ed, `(b - a) & (d - c) < 0` for `a > b and c > d`, because the
# compiler would split comparisons into jumps of their own, each guessed wrong half of the time.
# Times and windows are bounded (model/event_time.py), so the differences do not overflow.


def load_control(w: Text, shape: SequenceShape) -> None:
    """How far the rings are filled, and what the kernel returns."""
    for s in range(shape.length - 1):
        w(f"n{s} = control[{2 * s}]")
        w(f"tail{s} = control[{2 * s + 1}]")
        w(f"size{s} = I(r{s}.shape[0]) >> {shape.entry_shift(s)}")
        w(f"m{s} = U(size{s} - 1)")
    if shape.in_blocks:
        w(f"pushed_to = control[{2 * shape.length}]")
        w("steps_back = 0")
    w("nout = 0")
    w("nlist = 0")
    w(f"status = {DONE}")
    w("reached = I(end)")
    if shape.counting:
        for counter in COUNTERS:
            w(f"count_{counter} = 0")


def save_control(w: Text, shape: SequenceShape, pushed_to: str) -> None:
    """Write back how far the rings are filled, and in blocks up to where events were pushed."""
    for s in range(shape.length - 1):
        w(f"control[{2 * s}] = n{s}")
        w(f"control[{2 * s + 1}] = tail{s}")
    if shape.in_blocks:
        w(f"control[{2 * shape.length}] = {pushed_to}")
        w(f"control[{2 * shape.length + 1}] = steps_back")
    if shape.counting:
        for slot, counter in enumerate(COUNTERS):
            w(f"counters[{slot}] += count_{counter}")


def _bit(bit: int, simple: str) -> str:
    test = f"((mk >> {bit}) & 1)"
    return f"({test} and {simple})" if simple else test


def _key(group: int | None) -> str:
    return "C0" if group is None else f"key{group or ''}"


def check_rings(w: Text, shape: SequenceShape) -> None:
    """Room in every ring for this event, or for all of a block, before any has an effect.

    Also for rings an event does not enter: it may write its entry first and then decide.
    """
    states = range(shape.length - 1)
    # Below zero as long as every ring has room.
    coming = [f"many{s}" if shape.in_blocks else "1" for s in states]
    fulls = [f"(n{s} - tail{s} + {coming[s]} - 1 - size{s})" for s in states]
    w(f"if {' & '.join(fulls)} >= 0:", deeper=1)
    if shape.window_in_scan:
        w("floor = min(low, prune_to)")
        for s in states:
            oldest = _field(shape, s, "t", _place(shape, s, f"tail{s}"))
            w(f"while tail{s} < n{s} and {oldest} <= floor:", deeper=1)
            w(f"tail{s} += 1")
            w.depth -= 1
    for s in states:
        w(f"if {fulls[s]} >= 0:", deeper=1)
        w(f"status = {RING_FULL + s}")
        w.depth -= 1
    _stop_if(w, "status")
    w.depth -= 1


def _stop_if(w: Text, condition: str) -> None:
    w(f"if {condition}:", deeper=1)
    w("reached = event")
    w("break")
    w.depth -= 1


def _place(shape: SequenceShape, state: int, number: str) -> str:
    """Where the entry of this number begins in the ring."""
    return f"(U({number}) & m{state}) << C{shape.entry_shift(state)}"


def _field(shape: SequenceShape, state: int, name: str, place: str) -> str:
    """A number of the entry that begins at a place of the ring."""
    offset = shape.entry_fields(state).index(name)
    return f"r{state}[{place} | C{offset}]" if offset else f"r{state}[{place}]"


def _newest(w: Text, shape: SequenceShape, state: int, group: int | None) -> None:
    """`p{state}`: newest entry of `state` with this key, which may be tied with the event."""
    s = state
    w(f"k = {_key(group)}")
    w(f"p{s} = h{s}[k]")
    w(f"i{s} = {_place(shape, s, f'p{s}')}")
    negation = shape.between[s]
    if negation:
        bit = negation.bit
        w(f"nbx = last{bit}[{_key(negation.key_group)}]")
        w("if nbx >= oi:", deeper=1)
        w(f"nbx = before{bit}[{_key(negation.key_group)}]")
        w.depth -= 1


def _step_before(w: Text, shape: SequenceShape, state: int) -> None:
    """From the newest entry to the newest one before the event; ties never follow each other."""
    s = state
    if not shape.arrival_order:
        tied = f"(ti - 1 - {_field(shape, s, 't', f'i{s}')})"
        w(f"while ((tail{s} - 1 - p{s}) & {tied}) < 0:", deeper=1)
        w(f"p{s} = {_field(shape, s, 'prev', f'i{s}')}")
        w(f"i{s} = {_place(shape, s, f'p{s}')}")
        if shape.in_blocks:
            w("steps_back += 1")
        w.depth -= 1


def _reachable(shape: SequenceShape, state: int) -> str:
    """A number below zero if the newest entry can be part of a match that ends with the event."""
    s = state
    here = f"i{s}"
    test = f"(tail{s} - 1 - p{s})"
    if shape.window_in_scan:
        test += f" & (low - {_field(shape, s, 'mst' if s else 't', here)})"
    if shape.between[s]:
        test += f" & (nbx - 1 - {_field(shape, s, _order(shape), here)})"
    return test


def _order(shape: SequenceShape) -> str:
    return "o" if shape.arrival_order else "t"


LONGEST_NESTED = 8
"""Up to this length construction is nested loops; beyond, one loop: Python nests twenty at most."""

_SHORT = 3
"""Up to this length every event writes an entry to every ring and only then counts it or not.

In blocks, where events of other states are not in the way, those of any length do.
"""


def push(w: Text, shape: SequenceShape, s: int) -> None:
    """Let the event enter state s if one of the state before can precede it."""
    depth = w.depth
    undecided = shape.in_blocks or shape.length <= _SHORT
    if not undecided:
        w(f"if {_bit(s, shape.simple[s])}:", deeper=1)
    if s:
        _newest(w, shape, s - 1, shape.key_groups[s])
        _step_before(w, shape, s - 1)
        condition = _reachable(shape, s - 1)
    else:
        w(f"k = {_key(shape.key_groups[0])}")
        condition = "-1"
    if undecided:
        may = "" if shape.in_blocks else _bit(s, "")
        if shape.simple[s]:
            may = f"I(bool({shape.simple[s]}))" + (f" & {may}" if may else "")
        w(f"enters = {may or 'I(1)'} & (({condition}) >> 63)")
    elif s:
        w(f"if ({condition}) < 0:", deeper=1)
    w(f"x = {_place(shape, s, f'n{s}')}")
    w(f"above = h{s}[k]")
    entry = {"t": "ti", "row": "ri", "prev": "above", "key": "I(k)", "o": "oi"}
    if shape.counts_first_events and s < 2:
        # Whatever the number before was, those of live entries of a key follow one another.
        entry["nth"] = f"{_field(shape, 0, 'nth', _place(shape, 0, 'above'))} + 1"
        entry["rip_nth"] = _field(shape, 0, "nth", "i0")
    if s:
        before = f"i{s - 1}"
        entry["rip"] = f"p{s - 1}"
        entry["mst"] = _field(shape, s - 1, "mst" if s > 1 else "t", before)
        entry["nb"] = "nbx"
    elif shape.before_first:
        negation = shape.before_first
        bit, key = negation.bit, _key(negation.key_group)
        w(f"nsx = last{bit}[{key}]")
        entry["ns"] = f"nsx if nsx < oi else before{bit}[{key}]"
    for name in shape.entry_fields(s):
        w(f"{_field(shape, s, name, 'x')} = {entry[name]}")
    for column in shape.entry_columns[s]:
        w(f"e{column}_{s}[x >> C{shape.entry_shift(s)}] = c{column}[i]")
    if undecided:
        w(f"h{s}[k] = above ^ ((above ^ n{s}) & -enters)  # n{s} or above, without a jump")
        w(f"n{s} += enters")
    else:
        w(f"h{s}[k] = n{s}")
        w(f"n{s} += 1")
    if shape.counting:
        w(f"count_pushed += {'enters' if undecided else '1'}")
    w.depth = depth


def construct(w: Text, shape: SequenceShape) -> None:
    """Write the matches that the event completes."""
    last = shape.length - 1
    depth = w.depth
    if last == 0:
        w(f"if emit and {_bit(last, shape.simple[last])}:", deeper=1)
        w("first_out = nout")
        if shape.counting:
            w("edges_before = count_edges")
            w("sequences_before = count_sequences")
        w("first_listed = nlist")
        _emit_flat(w, shape)
        w.depth = depth
        return
    _newest(w, shape, last - 1, shape.key_groups[last])
    simple = shape.simple[last]
    own = f" and {simple}" if simple else ""
    # Older entries reach less far back, so the newest one, tied or not, decides whether to look.
    wanted = "" if shape.in_blocks else f"-(emit & (mk >> {last}) & 1) & "
    w(f"if ({wanted}{_reachable(shape, last - 1)}) < 0{own}:", deeper=1)
    _step_before(w, shape, last - 1)
    w("first_out = nout")
    if shape.counting:
        w("edges_before = count_edges")
        w("sequences_before = count_sequences")
    w("first_listed = nlist")
    if shape.factorised:
        _list_first_events(w, shape)
        stop = 1
    else:
        stop = 0
    if shape.factorised and last == 1:
        w("if nlist > first_listed:", deeper=1)
    if shape.length > LONGEST_NESTED:
        _walk_flat(w, shape, stop)
    else:
        for level in range(last - 1, stop - 1, -1):
            _enter(w, shape, level)
            w(f"while p{level} >= tail{level}:", deeper=1)
            _walk_step(w, shape, level, ("break",))
        _emit(w, shape)
    w.depth = depth


def _walk_flat(w: Text, shape: SequenceShape, stop: int) -> None:
    """One loop that knows at which level it is: the languages nest no more than twenty."""
    last = shape.length - 1
    w(f"at = {last - 1}")
    w(f"while at < {last}:", deeper=1)
    for level in range(last - 1, stop - 1, -1):
        back = (f"at = {level + 1}", "continue")
        w(f"if at == {level}:", deeper=1)
        w(f"if p{level} < tail{level}:", deeper=1)
        for line in back:
            w(line)
        w.depth -= 1
        _walk_step(w, shape, level, back)
        if level > stop:
            _enter(w, shape, level - 1)
            w(f"at = {level - 1}")
        else:
            _emit(w, shape)
        w.depth -= 1


def _enter(w: Text, shape: SequenceShape, level: int) -> None:
    if level < shape.length - 2:
        w(f"p{level} = {_field(shape, level + 1, 'rip', f'b{level + 1}')}")


def _emit(w: Text, shape: SequenceShape) -> None:
    if shape.factorised:
        _emit_group(w, shape)
    else:
        _emit_flat(w, shape)


def _walk_step(w: Text, shape: SequenceShape, level: int, back: tuple[str, ...]) -> None:
    """Take the next entry of a level; `back` is how to leave for the level above."""
    last = shape.length - 1
    w(f"b{level} = {_place(shape, level, f'p{level}')}")
    if shape.window_in_construction:
        exact = "mst" if level and shape.window_in_scan else "t"
        w(f"if {_field(shape, level, exact, f'b{level}')} <= low:", deeper=1)
        for line in back:
            w(line)
        w.depth -= 1
    if shape.between[level]:
        bound = "nbx"
        if level < last - 1:
            bound = _field(shape, level + 1, "nb", f"b{level + 1}")
        w(f"if {_field(shape, level, _order(shape), f'b{level}')} < {bound}:", deeper=1)
        for line in back:
            w(line)
        w.depth -= 1
    w(f"p{level} = {_field(shape, level, 'prev', f'b{level}')}")
    if shape.counting:
        w("count_edges += 1")
    if shape.entry_columns[level]:  # tests read these, which lie one after the other
        w(f"q{level} = b{level} >> C{shape.entry_shift(level)}")
    for test in shape.joint[level]:
        w(f"if not ({test}):", deeper=1)
        w("continue")
        w.depth -= 1


def _emit_flat(w: Text, shape: SequenceShape) -> None:
    last = shape.length - 1
    if shape.counting:
        w("count_sequences += 1")
    for test in shape.joint[last]:  # the tests of a Selection operator on top of construction
        w(f"if not ({test}):", deeper=1)
        w("continue")
        w.depth -= 1
    if last and not shape.window_in_construction:
        w(f"if {_field(shape, 0, 't', 'b0')} <= low:", deeper=1)
        w("continue")
        w.depth -= 1
    if shape.before_first and last:
        # No negative in the open (t_n - T, t_1); ns is the latest one before t_1.
        w(f"if {_field(shape, 0, 'ns', 'b0')} > low:", deeper=1)
        w("continue")
        w.depth -= 1
    w("if nout >= out0.shape[0]:", deeper=1)
    if shape.counting:  # the event will be looked at anew, and counted then
        w("count_edges = edges_before")
        w("count_sequences = sequences_before")
    _return_full(w, shape)
    w("o = U(nout)")
    for s in range(last):
        w(f"out{s}[o] = {_field(shape, s, 'row', f'b{s}')}")
    w(f"out{last}[o] = ri")
    w("nout += 1")


def _list_first_events(w: Text, shape: SequenceShape) -> None:
    """Rows of state 0 with this key inside the window, newest first: ranges of it are shared."""
    here = "ia"
    time, before = _field(shape, 0, "t", here), _field(shape, 0, "prev", here)
    w("a = h0[k]")
    w(f"ia = {_place(shape, 0, 'a')}")
    w(f"while ((tail0 - 1 - a) & (ti - 1 - {time})) < 0:", deeper=1)
    w(f"a = {before}")
    w(f"ia = {_place(shape, 0, 'a')}")
    if shape.in_blocks:
        w("steps_back += 1")
    w.depth -= 1
    if shape.counts_first_events:
        w(f"newest = {_field(shape, 0, 'nth', here)}")
    w(f"while a >= tail0 and {time} > low:", deeper=1)
    w("if nlist >= listed.shape[0]:", deeper=1)
    _return_full(w, shape)
    w(f"listed[U(nlist)] = {_field(shape, 0, 'row', here)}")
    w("nlist += 1")
    w(f"a = {before}")
    w(f"ia = {_place(shape, 0, 'a')}")
    w.depth -= 1


def _return_full(w: Text, shape: SequenceShape) -> None:
    """Leave, to be called again for the event with other buffers."""
    save_control(w, shape, "stop")
    w(f"return event, first_out, first_listed, {OUTPUT_FULL}")
    w.depth -= 1


def _emit_group(w: Text, shape: SequenceShape) -> None:
    last = shape.length - 1
    if last == 1:
        w("offset = first_listed")
    else:
        # The list goes back from the newest one by one.
        w(f"offset = first_listed + newest - {_field(shape, 1, 'rip_nth', 'b1')}")
    w("if nout >= out_from.shape[0]:", deeper=1)
    _return_full(w, shape)
    w("o = U(nout)")
    for s in range(1, last):
        w(f"out{s}[o] = {_field(shape, s, 'row', f'b{s}')}")
    w(f"out{last}[o] = ri")
    w("out_from[o] = offset")
    w("out_count[o] = nlist - offset")
    w("nout += 1")


def note_negative(w: Text, shape: SequenceShape, negation: Between) -> None:
    """The two latest distinct times of a negative per key: ties need the one before."""
    bit, key = negation.bit, _key(negation.key_group)
    w(f"if {_bit(bit, negation.simple)}:", deeper=1)
    w(f"z = {key}")
    w(f"if last{bit}[z] != oi:", deeper=1)
    w(f"before{bit}[z] = last{bit}[z]")
    w(f"last{bit}[z] = oi")
    w.depth -= 2
