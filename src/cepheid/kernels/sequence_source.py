"""Source text of the sequence kernel: Active Instance Stacks partitioned by key (SASE section 4).

One pass over the relevant rows, in time order. State s keeps a ring of entries chained per key from
`h{s}[key]`; an entry holds its time, row, the previous entry of its key (`prev`), the newest entry
of the state before it (`rip`, the paper's RIP pointer) and `mst`, the latest possible first-event
time of a path to it, which makes window pruning exact. States are served from last to first, so
that an event never precedes itself. The kernel allocates nothing: it stops at an event boundary
with a status (`DONE`, `OUTPUT_FULL`, `RING_FULL + s`); the caller drains or grows and calls again
with the same event.

Events come to a kernel in one of two orders. Where ties and negation allow it, a block of them is
dealt out to the states, and each state takes its own in one go: a loop does one thing, without a
jump that depends on an event's type, and those of a later state step back over entries that came
after them, as they do over tied ones. Else every event visits all states, from last to first.

Cost: O(1) per relevant row plus the size of the output. Its twin is `tests/oracle/denotation.py`.
"""

from __future__ import annotations

from functools import lru_cache

from cepheid.kernels.kernel_text import DECORATOR
from cepheid.kernels.sequence_shape import SequenceShape
from cepheid.kernels.sequence_text import (
    Text,
    check_rings,
    construct,
    load_control,
    note_negative,
    push,
    save_control,
)

BLOCK = 64
"""Rows of a block at most."""


@lru_cache(maxsize=1024)
def sequence_source(shape: SequenceShape) -> str:
    """The text of a module with one compiled function `kernel` for the shape."""
    # Constants have names of their own: numba types a name once, a conversion every time.
    head = "U = np.uint64\nI = np.int64\n"
    head += "".join(f"C{n} = np.uint64({n})\n" for n in range(9))
    w = Text()
    load_control(w, shape)
    w("numbered = row.shape[0] > 0")
    if shape.in_blocks:
        _blocks(w, shape)
    else:
        _one_by_one(w, shape)
    w.depth = 1
    save_control(w, shape, "0")
    w("return reached, nout, nlist, status")
    arguments = ", ".join(shape.arguments())
    function = f"{DECORATOR}\ndef kernel({arguments}):\n"
    return head + "\n\n" + function + "\n".join(w.lines) + "\n"


def _one_by_one(w: Text, shape: SequenceShape) -> None:
    w("for event in range(begin, end):", deeper=1)
    _load_event(w, shape)
    w("mk = mask[i]")
    if shape.length > 1:
        check_rings(w, shape)
    construct(w, shape)
    for state in range(shape.length - 2, -1, -1):
        push(w, shape, state)
    for negation in shape.negations:
        note_negative(w, shape, negation)


def _blocks(w: Text, shape: SequenceShape) -> None:
    last = shape.length - 1
    w("start = I(begin)")
    w("while start < end:", deeper=1)
    w("stop = min(start + block, I(end))")
    w("if start < pushed_to:", deeper=1)  # the output was full in the middle of a block
    w("stop = pushed_to")
    w.depth -= 1
    for s in range(shape.length):
        w(f"many{s} = I(0)")
    w("for event in range(start, stop):", deeper=1)
    w("mk = mask[U(event)]")
    for s in range(shape.length):
        w(f"dealt[U(many{s} + {s * BLOCK})] = event")
        w(f"many{s} += (mk >> {s}) & 1")
    w.depth -= 1
    w("if start >= pushed_to:", deeper=1)
    w("event = start")
    w("low = t[U(start)] - W")
    check_rings(w, shape)
    for s in range(last):
        _for_each(w, shape, s, "")
        push(w, shape, s)
        w.depth -= 1
    w.depth -= 1
    _for_each(w, shape, last, " if emit else 0")
    construct(w, shape)
    w.depth -= 1
    w("start = stop")


def _for_each(w: Text, shape: SequenceShape, state: int, unless: str) -> None:
    w(f"for turn in range(many{state}{unless}):", deeper=1)
    w(f"event = dealt[U(turn + {state * BLOCK})]")
    _load_event(w, shape)


def _load_event(w: Text, shape: SequenceShape) -> None:
    w("i = U(event)")
    w("ri = row_base + (row[i] if numbered else event)")
    for group in range(shape.groups):
        w(f"key{group or ''} = U(k{group}[i])")
    w("ti = t[i]")
    if shape.arrival_order:
        w("oi = order_base + event")
    elif shape.negations:
        w("oi = ti")
    w("low = ti - W")
