"""Many sequences over one stream: events are kept once per atom and key, whoever asks for them.

An atom is a type with a condition on one event; queries that have it in common share its events. An
event is put into the ring of each of its atoms, and where an atom is the last of a query's, the
query's matches are built backwards from it. Before that, a bound is found for every step: the first
event of the step that has a chain of earlier ones inside the window. From there on every event that
construction touches is part of a match, so an event costs its atoms, the queries that end with them
and the matches themselves (SIGMOD 2006, section 4.1, has one set of stacks per query instead).
Every atom and key has a place of its own; `shared_links.py` is for more than that is good for.

In a succession (`A ; B ; C` of NEXT, brackets to the left) an event goes with the *first* of the
next step after it. What comes for a step, whether it passes the step's own conditions or not, is
its rival, an atom as well: only events from the rival before on go with an event.

Arrays of int64, with a row each:
  rings    [key and atom, start, size, head, tail]    by key and atom; places head..tail modulo
                              size, from `start` on; as wide as a line of the cache
  pool     [time, event]                              entries of all rings, the latest last
  latest   the latest time by key and atom: most queries that an event might end stop here
  steps    [atom, rival]                              of all queries, query after query
  queries  [window, since, until, is succession, atom before the last, first step, steps]
                                                      by their last atoms
  atoms    [key group, is kept, reach, atom before the last of the first of the ending queries,
           first ending query, ending queries]
Pairs (row, atom) come sorted by row; rows are in order of time.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import allocating, compiled, inlined_early
from cepheid.kernels.processor import prefetch

DONE, OUTPUT_FULL, POOL_FULL = range(3)
"""Why it stopped, always before a row that it has not begun."""

POOL_COUNT, OUT_COUNT, FREE = range(3)
"""Places in `control`; lists of free parts of the pool by size come last."""
SIZES = 48

OWNER, RING_START, RING_SIZE, HEAD, TAIL = range(5)
RING_WIDTH = 8
NOBODY = -1
WINDOW, SINCE, UNTIL, IS_SUCCESSION, NEEDED, FIRST_STEP, STEPS, QUERY_WIDTH = range(8)
KEY_GROUP, KEPT, REACH, FIRST_NEEDED, FIRST_ENDING, ENDINGS, ATOM_WIDTH = range(7)
TOUCHED, KEPT_EVENTS, FOUND = range(3)
"""Counters: queries looked at, entries made, matches built."""

_FIRST_SIZE = 4
_AHEAD = 12
"""How many pairs ahead memory is asked for what they need."""
_NEVER = -(2**62)


@inlined_early
def first_after(rings, pool, ring, begin, time):  # type: ignore[no-untyped-def]
    """The first place of a ring from `begin` on whose time is later than `time`."""
    start, mask = rings[ring, RING_START], rings[ring, RING_SIZE] - 1
    low, high = begin, rings[ring, TAIL]
    near = min(high, low + 4)
    while low < near and pool[np.uint64(start + (low & mask)), 0] <= time:
        low += 1
    if low == near:
        while low < high:
            middle = (low + high) >> 1
            if pool[np.uint64(start + (middle & mask)), 0] > time:
                high = middle
            else:
                low = middle + 1
    return low


@inlined_early
def time_before(rings, pool, ring, time):  # type: ignore[no-untyped-def]
    """The latest time of a ring's entries before `time`; very long ago if there is none."""
    if rings[ring, OWNER] == NOBODY:
        return _NEVER
    place = first_after(rings, pool, ring, rings[ring, HEAD], time - 1)
    if place == rings[ring, HEAD]:
        return _NEVER
    mask = rings[ring, RING_SIZE] - 1
    return pool[rings[ring, RING_START] + ((place - 1) & mask), 0]


@allocating
def entries(rings, pool):  # type: ignore[no-untyped-def]
    """What all rings hold, as rows [time, event, key and atom], ring after ring."""
    count = 0
    for ring in range(rings.shape[0]):
        count += rings[ring, TAIL] - rings[ring, HEAD]
    held = np.empty((count, 3), np.int64)
    count = 0
    for ring in range(rings.shape[0]):
        start, mask = rings[ring, RING_START], rings[ring, RING_SIZE] - 1
        for place in range(rings[ring, HEAD], rings[ring, TAIL]):
            held[count, 0] = pool[start + (place & mask), 0]
            held[count, 1] = pool[start + (place & mask), 1]
            held[count, 2] = rings[ring, OWNER]
            count += 1
    return held


@compiled
def take_back(rings, pool, since):  # type: ignore[no-untyped-def]
    """Forget the entries from a time on: they are fed again, with what came late among them."""
    for ring in range(rings.shape[0]):
        start, mask = rings[ring, RING_START], rings[ring, RING_SIZE] - 1
        while (
            rings[ring, TAIL] > rings[ring, HEAD]
            and pool[start + ((rings[ring, TAIL] - 1) & mask), 0] >= since
        ):
            rings[ring, TAIL] -= 1


@compiled
def run(  # type: ignore[no-untyped-def]
    begin,
    pair_rows,
    pair_atoms,
    times,
    keys,
    first,
    numbered,
    emit,
    safe,
    atoms,
    queries,
    steps,
    rings,
    pool,
    latest,
    control,
    counters,
    out,
    scratch,
):
    """Work on pairs from `begin` on; where and why it stopped.

    `keys[g, row]` is the key of a row for atoms of group g, -1 if undefined. Rows are the events
    `numbered`, or those from `first` on. No event before `safe` will come after these. `out` gets a
    row for each match: its query and events, then -1.
    """
    bound, at, own, places = scratch[0], scratch[1], scratch[2], scratch[3]
    pairs = pair_rows.shape[0]
    width = atoms.shape[0]
    touched = 0
    written = control[OUT_COUNT]
    i = begin
    while i < pairs:
        row = pair_rows[i]
        j = i + 1
        while j < pairs and pair_rows[j] == row:
            j += 1
        if i + _AHEAD < pairs:
            ahead = pair_atoms[i + _AHEAD]
            group = atoms[ahead, KEY_GROUP]
            if group >= 0:
                coming = keys[group, pair_rows[i + _AHEAD]] * width
                for line in range(0, width, 8):
                    prefetch(latest, coming + line)  # type: ignore[call-arg]
                prefetch(rings, (coming + ahead) * RING_WIDTH)  # type: ignore[call-arg]
        now = times[row]
        event = numbered[row] if numbered.shape[0] else first + row
        before = written
        if emit:
            for p in range(i, j):
                atom = pair_atoms[p]
                group = atoms[atom, KEY_GROUP]
                key = np.int64(0) if group < 0 else keys[group, row]
                first_ending = atoms[atom, FIRST_ENDING]
                touched += atoms[atom, ENDINGS]
                for query in range(first_ending, first_ending + atoms[atom, ENDINGS]):
                    if now < queries[query, SINCE] or now >= queries[query, UNTIL]:
                        continue
                    last = queries[query, STEPS] - 1
                    first_step = queries[query, FIRST_STEP]
                    if last > 0 and key < 0:
                        continue
                    # The earliest chain: behind it every event of a step has one before it.
                    low = max(now - queries[query, WINDOW], queries[query, SINCE] - 1)
                    base = np.uint64(key * width)
                    lacking = 0  # no way out of the loop: nobody could foresee it
                    for s in range(last):
                        atom_before = np.uint64(steps[np.uint64(first_step + s), 0])
                        lacking |= latest[base + atom_before] <= low
                    if lacking:
                        continue
                    is_possible = True
                    is_succession = queries[query, IS_SUCCESSION]
                    earliest = low
                    for s in range(last):
                        ring = key * width + steps[first_step + s, 0]
                        if rings[ring, OWNER] == NOBODY:
                            is_possible = False
                            break
                        place = first_after(rings, pool, ring, rings[ring, HEAD], low)
                        if place == rings[ring, TAIL]:
                            is_possible = False
                            break
                        own[s] = ring
                        bound[s] = place
                        mask = rings[ring, RING_SIZE] - 1
                        low = pool[rings[ring, RING_START] + (place & mask), 0]
                    if not is_possible or (last > 0 and low >= now):
                        continue
                    if last == 0:
                        if written >= out.shape[0]:
                            control[OUT_COUNT] = before
                            return i, OUTPUT_FULL
                        out[written, 0] = query
                        out[written, 1] = event
                        out[written, 2:] = -1
                        written += 1
                        continue
                    s = last - 1
                    if is_succession:
                        rival = key * width + steps[first_step + last, 1]
                        after = max(earliest, time_before(rings, pool, rival, now) - 1)
                        bound[s] = first_after(rings, pool, own[s], rings[own[s], HEAD], after)
                    at[s] = first_after(rings, pool, own[s], bound[s], now - 1)
                    while s < last:
                        at[s] -= 1
                        if at[s] < bound[s]:
                            s += 1
                            continue
                        if s > 0:
                            ring = own[s]
                            mask = rings[ring, RING_SIZE] - 1
                            time = pool[rings[ring, RING_START] + (at[s] & mask), 0]
                            if is_succession:
                                rival = key * width + steps[first_step + s, 1]
                                after = max(earliest, time_before(rings, pool, rival, time) - 1)
                                head = rings[own[s - 1], HEAD]
                                bound[s - 1] = first_after(rings, pool, own[s - 1], head, after)
                            s -= 1
                            at[s] = first_after(rings, pool, own[s], bound[s], time - 1)
                            continue
                        if written >= out.shape[0]:
                            control[OUT_COUNT] = before
                            return i, OUTPUT_FULL
                        out[written, 0] = query
                        for x in range(last):
                            ring = own[x]
                            mask = rings[ring, RING_SIZE] - 1
                            place = rings[ring, RING_START] + (at[x] & mask)
                            out[written, 1 + x] = pool[place, 1]
                        out[written, 1 + last] = event
                        for x in range(2 + last, out.shape[1]):
                            out[written, x] = -1
                        written += 1
        # Room for the whole row first, so that a row is done or not begun.
        for p in range(i, j):
            atom = pair_atoms[p]
            group = atoms[atom, KEY_GROUP]
            key = np.int64(0) if group < 0 else keys[group, row]
            if not atoms[atom, KEPT] or key < 0:
                continue
            ring = key * width + atom
            places[p - i] = ring
            if rings[ring, OWNER] == NOBODY:
                rings[ring, OWNER] = key << 32 | atom
                rings[ring, RING_START] = rings[ring, RING_SIZE] = 0
                rings[ring, HEAD] = rings[ring, TAIL] = 0
            size = rings[ring, RING_SIZE]
            if rings[ring, TAIL] - rings[ring, HEAD] < size:
                continue
            start, mask = rings[ring, RING_START], size - 1
            past = min(now, safe) - atoms[atom, REACH]
            while (
                rings[ring, HEAD] < rings[ring, TAIL]
                and pool[start + (rings[ring, HEAD] & mask), 0] <= past
            ):
                rings[ring, HEAD] += 1
            if rings[ring, TAIL] - rings[ring, HEAD] < size:
                continue
            larger = 2 * size if size else _FIRST_SIZE
            level = 0
            while (1 << level) < larger:
                level += 1
            place = control[FREE + level]
            if place >= 0:
                control[FREE + level] = pool[place, 0]
            else:
                place = control[POOL_COUNT]
                if place + larger > pool.shape[0]:
                    control[OUT_COUNT] = before
                    return i, POOL_FULL
                control[POOL_COUNT] += larger
            for x in range(rings[ring, HEAD], rings[ring, TAIL]):
                pool[place + (x & (larger - 1)), 0] = pool[start + (x & mask), 0]
                pool[place + (x & (larger - 1)), 1] = pool[start + (x & mask), 1]
            if size:
                pool[start, 0] = control[FREE + level - 1]
                control[FREE + level - 1] = start
            rings[ring, RING_START] = place
            rings[ring, RING_SIZE] = larger
        for p in range(i, j):
            atom = pair_atoms[p]
            group = atoms[atom, KEY_GROUP]
            key = np.int64(0) if group < 0 else keys[group, row]
            if not atoms[atom, KEPT] or key < 0:
                continue
            ring = places[p - i]
            place = rings[ring, RING_START] + (rings[ring, TAIL] & (rings[ring, RING_SIZE] - 1))
            pool[place, 0] = now
            pool[place, 1] = event
            rings[ring, TAIL] += 1
            latest[key * width + atom] = now
            counters[KEPT_EVENTS] += 1
        counters[FOUND] += written - before
        counters[TOUCHED] += touched
        touched = 0
        control[OUT_COUNT] = written
        i = j
    return i, DONE
