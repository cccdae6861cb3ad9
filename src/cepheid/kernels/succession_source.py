"""The source of a kernel for NEXT's operators, all of a query fused into one function.

Events come in the stable order (end, start, arrival), a set of one end at a time and complete.
Operators work bottom up on each set: every operator's findings end now, and wait in a list of their
own until the operator above has read them. Nothing that ends now can follow what also ends now, so
an operator first serves its waiting instances and then lets the new ones wait.
"""

from __future__ import annotations

from cepheid.kernels.kernel_text import KernelText
from cepheid.kernels.succession_shape import (
    Condition,
    Exclude,
    Follow,
    Leaf,
    Merge,
    Repeat,
    SuccessionShape,
    Test,
)

DONE, UPKEEP, OUTPUT = 0, 1, 2
"""Why a kernel stopped: at the end, to have its arrays tidied, or with enough to deliver."""

TOUCHED, STARTED, FINISHED = 0, 1, 2
"""Counters: instances looked at, instances that began to wait, matches found."""


def succession_source(shape: SuccessionShape) -> str:
    """The module text: conditions as functions of their own, then `kernel`."""
    return "\n".join([*_conditions(shape), _kernel(shape)])


def kernel_arguments(shape: SuccessionShape) -> tuple[str, ...]:
    """The kernel's arguments by name, in order."""
    fixed = ("order", "begin", "end", "base", "mask", "starts", "ends", *_columns(shape))
    settings = ("ci", "cf", "windows", "most", "upkeep_at", "output_at", "counters")
    return (*fixed, *settings, "nodes", "control", *_state(shape), "out", "out_ends")


def kernel_results(shape: SuccessionShape) -> tuple[str, ...]:
    """The arrays that may have grown, in the order in which the kernel returns them."""
    return ("nodes", *_state(shape), "out", "out_ends")


def _columns(shape: SuccessionShape) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(len(shape.columns)))


def _state(shape: SuccessionShape) -> tuple[str, ...]:
    found = tuple(f"found{k}" for k in range(len(shape.operators)))
    waiting = tuple(name for k in shape.waiting for name in (f"waiting{k}", f"lists{k}"))
    return (*found, *waiting, *(f"witnesses{k}" for k in shape.witnesses))


# -- conditions ---------------------------------------------------------------------------------


def _conditions(shape: SuccessionShape) -> list[str]:
    texts = []
    for k, operator in enumerate(shape.operators):
        for name in ("condition", "start", "skip", "test", "first_key", "second_key"):
            condition = getattr(operator, name, None)
            if isinstance(condition, Condition) and not condition.is_true:
                arguments = ", ".join(("nodes", "m", "q", *_read(shape)))
                body = "\n".join(f"    {line}" for line in condition.lines)
                texts.append(
                    f"@numba.njit(forceinline=True, nogil=True)\ndef {name}{k}({arguments}):\n"
                    + (f"{body}\n" if body else "")
                    + f"    return {condition.answer}\n"
                )
    return texts


def _read(shape: SuccessionShape) -> tuple[str, ...]:
    return ("base", "ends", "windows", *_columns(shape), "ci", "cf")


def _call(shape: SuccessionShape, k: int, name: str, m: str, q: str) -> str:
    """The text that evaluates a condition of operator k."""
    condition: Condition = getattr(shape.operators[k], name)
    if condition.is_true:
        return "True"
    return f"{name}{k}(nodes, {m}, {q}, {', '.join(_read(shape))})"


# -- the kernel ---------------------------------------------------------------------------------


def _kernel(shape: SuccessionShape) -> str:
    w = KernelText()
    w("i = begin")
    w("node_count = control[0]")
    w("run = control[1]")
    w("out_count = 0")
    w("out_rows = 0")
    w("status = 0")
    for k in shape.waiting:
        w(f"counts{k} = control[{_counts_at(shape, k)}:{_counts_at(shape, k) + 3}]")
    for k in shape.witnesses:
        w(f"witness_count{k} = control[{_counts_at(shape, k)}]")
    root = len(shape.operators) - 1
    with w.under("while i < end:"):
        with w.under("if node_count >= upkeep_at:"):
            w(f"status = {UPKEEP}")
            w("break")
        with w.under("if out_rows >= output_at:"):
            w(f"status = {OUTPUT}")
            w("break")
        w("now = ends[order[i] - base]")
        w("j = i + 1")
        with w.under("while j < end and ends[order[j] - base] == now:"):
            w("j += 1")
        for k, operator in enumerate(shape.operators):
            w(f"n{k} = 0")
            match operator:
                case Leaf():
                    _leaf(w, k, operator)
                case Merge():
                    _merge(w, k, operator)
                case Test():
                    _test(w, shape, k, operator)
                case Follow():
                    _follow(w, shape, k, operator)
                case Repeat():
                    _repeat(w, shape, k, operator)
                case Exclude():
                    _exclude(w, shape, k, operator)
        _deliver(w, root)
        w("i = j")
    w("control[0] = node_count")
    w("control[1] = run")
    w("control[2] = out_count")
    w("control[3] = out_rows")
    for k in shape.witnesses:
        w(f"control[{_counts_at(shape, k)}] = witness_count{k}")
    w(f"return i, status, {', '.join(kernel_results(shape))}")
    return w.function("kernel", kernel_arguments(shape))


def control_size(shape: SuccessionShape) -> int:
    """Counts of nodes, runs and outputs, then three for each operator that keeps something."""
    return 4 + 3 * len(shape.operators)


def _counts_at(shape: SuccessionShape, k: int) -> int:
    return 4 + 3 * k


def _room(w: KernelText, rows: str, needed: str) -> None:
    """Make an array larger, if that many rows do not fit."""
    with w.under(f"if {needed} > {rows}.shape[0]:"):
        w(f"{rows} = wider({rows}, {needed})")


def _leaf(w: KernelText, k: int, leaf: Leaf) -> None:
    _room(w, "nodes", "node_count + j - i")
    _room(w, f"found{k}", "j - i")
    with w.under("for x in range(i, j):"):
        w("event = order[x]")
        with w.under(f"if mask[event - base] & {1 << leaf.bit}:"):
            w("nodes[node_count, 0] = -1")
            w(f"nodes[node_count, 1] = {leaf.variable}")
            w("nodes[node_count, 2] = event")
            _add_found(w, k, "node_count", "starts[event - base]", "1")
            w("node_count += 1")


def _add_found(w: KernelText, k: int, node: str, start: str, length: str) -> None:
    w(f"found{k}[n{k}, 0] = {node}")
    w(f"found{k}[n{k}, 1] = {start}")
    w(f"found{k}[n{k}, 2] = {length}")
    w(f"n{k} += 1")


def _copy_found(w: KernelText, k: int, of: int, x: str) -> None:
    _add_found(w, k, f"found{of}[{x}, 0]", f"found{of}[{x}, 1]", f"found{of}[{x}, 2]")


def _merge(w: KernelText, k: int, merge: Merge) -> None:
    total = " + ".join(f"n{operand}" for operand in merge.operands)
    _room(w, f"found{k}", f"{total}")
    for operand in merge.operands:
        with w.under(f"for x in range(n{operand}):"):
            _copy_found(w, k, operand, "x")


def _test(w: KernelText, shape: SuccessionShape, k: int, test: Test) -> None:
    _room(w, f"found{k}", f"n{test.operand}")
    with w.under(f"for x in range(n{test.operand}):"):
        w(f"q = found{test.operand}[x, 0]")
        with w.under(f"if {_call(shape, k, 'condition', 'q', 'q')}:"):
            _copy_found(w, k, test.operand, "x")


def _serve(
    w: KernelText, shape: SuccessionShape, k: int, second: int, *, unordered: bool, capped: bool
) -> None:
    """Each thing found by `second`, in the stable order, takes the instances it succeeds."""
    if unordered:
        with w.under(f"if n{second} > 1:"):
            w(f"sort_found(found{second}, n{second}, nodes, starts, ends, base)")
    w("u = 0")
    with w.under(f"while u < n{second}:"):
        w("v = u + 1")
        compare = f"order_of(nodes, found{second}[u, 0], found{second}[v, 0], starts, ends, base)"
        with w.under(f"while v < n{second} and {compare} == 0:"):
            w("v += 1")
        w("run += 1")
        with w.under("for x in range(u, v):"):
            w(f"q = found{second}[x, 0]")
            w(f"start = found{second}[x, 1]")
            w(f"hash = {_hash(shape, k, 'second_key')}")
            with w.under("if hash == NO_KEY:"):
                w("continue")
            w(f"bucket = bucket_of(hash, lists{k})")
            w("before = -1")
            w(f"row = lists{k}[bucket, 0]")
            # The earliest stand first: behind one that q does not follow, it follows none.
            with w.under(f"while row >= 0 and waiting{k}[row, 1] < start:"):
                w(f"counters[{TOUCHED}] += 1")
                w(f"m = waiting{k}[row, 0]")
                with w.under(f"if waiting{k}[row, 4] < now:"):
                    w(f"row = take_out(waiting{k}, lists{k}, counts{k}, bucket, before, row)")
                    w("continue")
                fits = _call(shape, k, "skip", "m", "q")
                with w.under(f"if {fits}:"):
                    with w.under(f"if {_call(shape, k, 'test', 'm', 'q')}:"):
                        _room(w, "nodes", "2 * node_count + 2")
                        w("node_count = joined(nodes, node_count, m, q) + 1")
                        _room(w, f"found{k}", f"n{k} + 1")
                        length = f"waiting{k}[row, 5] + 1"
                        first = "first_start(nodes, m, starts, base)"
                        _add_found(w, k, "node_count - 1", first, length)
                    with w.under("if v - u == 1:"):
                        w(f"row = take_out(waiting{k}, lists{k}, counts{k}, bucket, before, row)")
                        w("continue")
                    w(f"waiting{k}[row, 3] = run")
                w("before = row")
                w(f"row = waiting{k}[row, 2]")
        # What simultaneous successors took was left in place for all of them.
        with w.under("if v - u > 1:"):
            with w.under("for x in range(u, v):"):
                w(f"q = found{second}[x, 0]")
                w(f"hash = {_hash(shape, k, 'second_key')}")
                with w.under("if hash != NO_KEY:"):
                    w(f"released(waiting{k}, lists{k}, counts{k}, bucket_of(hash, lists{k}), run)")
        w("u = v")


def _hash(shape: SuccessionShape, k: int, name: str) -> str:
    condition: Condition = getattr(shape.operators[k], name)
    if condition.is_true:
        return "0"
    side = "m" if name == "first_key" else "q"
    return _call(shape, k, name, side, side)


def _let_wait(w: KernelText, shape: SuccessionShape, k: int, of: int, deadline: str) -> None:
    """What was found waits for its successor; what can equal nothing waits for none."""
    w(f"m = found{of}[x, 0]")
    w(f"hash = {_hash(shape, k, 'first_key')}")
    with w.under("if hash != NO_KEY:"):
        _room(w, f"waiting{k}", f"counts{k}[0] + 1")
        with w.under(f"if counts{k}[2] > 2 * lists{k}.shape[0]:"):
            w(f"lists{k} = wider_lists(waiting{k}, lists{k})")
        w(f"counters[{STARTED}] += 1")
        w(f"admit(waiting{k}, lists{k}, counts{k}, hash, m, now, {deadline}, found{of}[x, 2])")


def _follow(w: KernelText, shape: SuccessionShape, k: int, follow: Follow) -> None:
    _serve(w, shape, k, follow.second, unordered=follow.may_be_unordered, capped=False)
    with w.under(f"for x in range(n{follow.first}):"):
        w("limit = 2**62")
        for each in follow.deadlines:
            w(f"event = latest(nodes, found{follow.first}[x, 0], {each.variable})")
            with w.under("if event >= 0:"):
                w(f"limit = min(limit, ends[event - base] + windows[{each.window}])")
        _let_wait(w, shape, k, follow.first, "limit")


def _repeat(w: KernelText, shape: SuccessionShape, k: int, repeat: Repeat) -> None:
    of = repeat.operand
    _serve(w, shape, k, of, unordered=repeat.may_be_unordered, capped=repeat.is_capped)
    _room(w, f"found{k}", f"n{k} + n{of}")
    with w.under(f"for x in range(n{of}):"):
        w(f"q = found{of}[x, 0]")
        with w.under(f"if {_call(shape, k, 'start', '-1', 'q')}:"):
            _add_found(w, k, "q", f"found{of}[x, 1]", "1")
    with w.under(f"for x in range(n{k}):"):
        if repeat.is_capped:
            with w.under(f"if found{k}[x, 2] >= most:"):
                w("continue")
        _let_wait(w, shape, k, k, "2**62")


def _exclude(w: KernelText, shape: SuccessionShape, k: int, exclude: Exclude) -> None:
    """A match dies of an exception between its event of `since` and itself (SPEC A1.3)."""
    of, negated = exclude.operand, exclude.negated
    _room(w, f"witnesses{k}", f"witness_count{k} + n{negated}")
    with w.under(f"for x in range(n{negated}):"):
        w(f"q = found{negated}[x, 0]")
        w(f"witnesses{k}[witness_count{k}, 0] = q")
        w(f"witnesses{k}[witness_count{k}, 1] = found{negated}[x, 1]")
        w(f"witnesses{k}[witness_count{k}, 2] = now")
        w(f"witnesses{k}[witness_count{k}, 3] = starts[nodes[q, 2] - base]")
        w(f"witness_count{k} += 1")
    _room(w, f"found{k}", f"n{of}")
    with w.under(f"for x in range(n{of}):"):
        w(f"m = found{of}[x, 0]")
        w("since = -(2**62)")
        for variable in exclude.since:
            w(f"event = latest(nodes, m, {variable})")
            with w.under("if event >= 0:"):
                w("since = max(since, ends[event - base])")
        w("own = starts[nodes[m, 2] - base]")
        w("lives = True")
        if exclude.reports:
            w("fatal = -1")
        w(f"y = witness_count{k} - 1")
        with w.under(f"while y >= 0 and witnesses{k}[y, 2] > since:"):
            # Detection wins a tie: an exception counts only if its last stamps are smaller.
            w(f"earlier = witnesses{k}[y, 2] < now or witnesses{k}[y, 3] < own")
            w(f"q = witnesses{k}[y, 0]")
            dies = _call(shape, k, "condition", "m", "q")
            with w.under(f"if earlier and witnesses{k}[y, 1] > since and {dies}:"):
                w("lives = False")
                if exclude.reports:
                    compare = "order_of(nodes, q, fatal, starts, ends, base)"
                    with w.under(f"if fatal < 0 or {compare} < 0:"):
                        w("fatal = q")
                else:
                    w("break")
            w("y -= 1")
        with w.under("if lives:"):
            _copy_found(w, k, of, "x")
        if exclude.reports:
            with w.under("else:"):
                _room(w, "nodes", "2 * node_count + 2")
                w("node_count = failed(nodes, node_count, m, fatal) + 1")
                _add_found(w, k, "node_count - 1", "now", "1")


def _deliver(w: KernelText, root: int) -> None:
    with w.under(f"for x in range(n{root}):"):
        w(f"counters[{FINISHED}] += 1")
        w(f"node = found{root}[x, 0]")
        w("length = 0")
        with w.under("while node >= 0:"):
            w("length += 1")
            w("node = nodes[node, 0]")
        _room(w, "out", "out_rows + length")
        _room(w, "out_ends", "out_count + 1")
        w("out_rows += length")
        w("out_ends[out_count, 0] = out_rows")
        w("out_count += 1")
        w(f"node = found{root}[x, 0]")
        w("place = out_rows - 1")
        with w.under("while node >= 0:"):
            w("out[place, 0] = nodes[node, 1]")
            w("out[place, 1] = nodes[node, 2]")
            w("place -= 1")
            w("node = nodes[node, 0]")
