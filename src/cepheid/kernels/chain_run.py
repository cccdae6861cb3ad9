"""Plain chains `A ; B ; C ...` with one key, or none: a handful of steps for each event.

The waiting instances of a key are never written out. Each step but the last has a stack of entries,
an event each, linked by key as in SASE's Active Instance Stacks. An event that comes for step s takes
all entries of step s - 1 that wait for its key (SPEC A1.4: their immediate successor), and these lie
side by side: they are those since the last event that took some. So its own entry names the newest
one it took and the one before the oldest, and stands for all instances that go on with it. Every
entry is taken once, by simultaneous events together: those of the time at which entries were taken
last take the same ones again (SPEC D20). An entry never takes or is taken by one of its own time.

Only the last step follows the links down, to write matches. Windows are tested there; on the way up
they only keep out what cannot match any more.

Numbers of entries count up for ever; the entry n of a step lies at place n modulo the size of the
ring. What is not above the tail is gone.
  ring     for each step but the last `size` entries of [time, event, before, newest, since, key]
  records  for each key and step [newest entry, and of the last taking: time, from, to]
  gaps     for each pair of steps i < j how far apart their events may be
All is one function for every query, compiled once. Its twin is tests/oracle/denotation.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cepheid.kernels.match_nodes import wider
from cepheid.kernels.processor import lowest_bit

TIME, EVENT, BEFORE, NEWEST, SINCE, KEY = range(6)
ENTRY = 8
"""Numbers from one entry to the next: one line of the cache."""
_ENTRY_SHIFT = np.uint64(3)

HEAD, AT, FROM, TO = range(4)
RECORD = 4
_RECORD_SHIFT = np.uint64(2)

CURSOR, FLOOR, LOW, MOMENT, PATH, SCRATCH = range(6)
"""Rows of the scratch space of a way down, a column for each step."""

TOUCHED, STARTED, FINISHED = range(3)
"""Counters: entries looked at, entries made, matches found."""

FAR = 2**61
"""A gap that is none, and a time that never comes; sums with times stay below 2**63."""

_AT_ONCE = 64
_U = np.uint64


@njit(cache=True, nogil=True)
def advance(  # type: ignore[no-untyped-def]
    mask, times, keys, first, numbered, steps, gaps, waits, dead, records, counts, tails, ring, out,
    counters, scratch,
):  # fmt: skip
    """Take events in order of time; the ring and the output, which may grow, and the rows in it.

    Bit s of a mask says that an event may come for step s, bit steps + s that it may go on from
    there. Event i has the number numbered[i], or first + i where nothing is numbered.
    """
    last = steps - 1
    candidates = (_U(1) << _U(steps)) - _U(1)
    size = ring.shape[0] // (ENTRY * last)
    inside = _U(size - 1)
    rows = 0
    started = 0
    for i in range(mask.shape[0]):
        x = _U(i)
        now = times[x]
        if i % _AT_ONCE == 0:
            for s in range(last):
                if counts[s] - tails[s] + _AT_ONCE > size:
                    ring = with_room(ring, counts, tails, waits, dead, now)
                    size = ring.shape[0] // (ENTRY * last)
                    inside = _U(size - 1)
        event = numbered[x] if numbered.shape[0] else first + i
        bits = _U(mask[x])
        steps_open = bits & candidates
        key = keys[x]
        of_key = _U(key * steps) << _RECORD_SHIFT
        while steps_open:
            s = lowest_bit(steps_open)
            steps_open &= steps_open - _U(1)
            record = of_key + (_U(s) << _RECORD_SHIFT)
            newest = np.int64(-1)
            since = np.int64(-1)
            if s:
                newest = records[record - _U(RECORD)]
                since = records[record + _U(TO)]
                if records[record + _U(AT)] == now:
                    since = records[record + _U(FROM)]
                floor = max(since, tails[s - 1] - 1)
                below = _U((s - 1) * size)
                while newest > floor:
                    place = (below + (_U(newest) & inside)) << _ENTRY_SHIFT
                    if ring[place] < now:
                        break
                    newest = ring[place + _U(BEFORE)]
                if newest <= floor:
                    continue
                records[record + _U(AT)] = now
                records[record + _U(FROM)] = since
                records[record + _U(TO)] = newest
                place = (below + (_U(newest) & inside)) << _ENTRY_SHIFT
                if (bits >> _U(steps + s)) & _U(1) == 0 or now - ring[place] > waits[s - 1]:
                    continue
            if s < last:
                n = counts[s]
                place = (_U(s * size) + (_U(n) & inside)) << _ENTRY_SHIFT
                ring[place] = now
                ring[place + _U(EVENT)] = event
                ring[place + _U(BEFORE)] = records[record]
                ring[place + _U(NEWEST)] = newest
                ring[place + _U(SINCE)] = since
                ring[place + _U(KEY)] = key
                records[record] = n
                counts[s] = n + 1
                started += 1
                continue
            level = last - 1
            scratch[MOMENT, last] = now
            _enter(level, newest, since, steps, gaps, tails, scratch)
            while True:
                level = _next_path(level, last - 1, steps, gaps, tails, ring, counters, scratch)
                if level == last:
                    break
                out = wider(out, rows + steps)
                for step in range(last):
                    out[rows + step, 0] = step
                    out[rows + step, 1] = scratch[PATH, step]
                out[rows + last, 0] = last
                out[rows + last, 1] = event
                rows += steps
    counters[STARTED] += started
    counters[FINISHED] += rows // steps
    return ring, out, rows


@njit(cache=True, nogil=True)
def _enter(step, newest, since, steps, gaps, tails, scratch):  # type: ignore[no-untyped-def]
    """Begin with the entries of a step that one above has taken; the steps above are known."""
    low = np.int64(-FAR)
    for later in range(step + 1, steps):
        low = max(low, scratch[MOMENT, later] - gaps[step, later])
    scratch[CURSOR, step] = newest
    scratch[FLOOR, step] = max(since, tails[step] - 1)
    scratch[LOW, step] = low


@njit(cache=True, nogil=True)
def _next_path(level, top, steps, gaps, tails, ring, counters, scratch):  # type: ignore[no-untyped-def]
    """Go on to the next way down from step `top` to the first; 0, or top + 1 when there is none.

    `level` is where to go on: `top` at the beginning, then what the call before has returned.
    """
    size = ring.shape[0] // (ENTRY * (steps - 1))
    inside = _U(size - 1)
    while level <= top:
        n = scratch[CURSOR, level]
        if n > scratch[FLOOR, level]:
            place = (_U(level * size) + (_U(n) & inside)) << _ENTRY_SHIFT
            counters[TOUCHED] += 1
            if ring[place] >= scratch[LOW, level]:
                scratch[CURSOR, level] = ring[place + _U(BEFORE)]
                scratch[PATH, level] = ring[place + _U(EVENT)]
                scratch[MOMENT, level] = ring[place]
                if level == 0:
                    return 0
                level -= 1
                newest, since = ring[place + _U(NEWEST)], ring[place + _U(SINCE)]
                _enter(level, newest, since, steps, gaps, tails, scratch)
                continue
        level += 1
    return level


@njit(cache=True, nogil=True)
def with_room(ring, counts, tails, waits, dead, now):  # type: ignore[no-untyped-def]
    """Let go of entries that are too old for every match; a larger ring where that is not enough.

    Entries up to the time `dead` belong to no instance.
    """
    stacks = counts.shape[0]
    size = ring.shape[0] // (ENTRY * stacks)
    needed = size
    for s in range(stacks):
        old = max(dead, now - waits[s] - 1)
        while tails[s] < counts[s]:
            if ring[(s * size + (tails[s] & (size - 1))) * ENTRY] > old:
                break
            tails[s] += 1
        while counts[s] - tails[s] + _AT_ONCE > needed // 2:
            needed *= 2  # half of it stays free, so that this is not done all the time
    if needed == size:
        return ring
    larger = np.zeros(stacks * needed * ENTRY, np.int64)
    for s in range(stacks):
        for n in range(tails[s], counts[s]):
            of = (s * size + (n & (size - 1))) * ENTRY
            to = (s * needed + (n & (needed - 1))) * ENTRY
            larger[to : to + ENTRY] = ring[of : of + ENTRY]
    return larger


@njit(cache=True, nogil=True)
def survey(  # type: ignore[no-untyped-def]
    now, steps, gaps, records, counts, tails, ring, counters, scratch, earliest
):
    """How many instances wait at a time when all events before it were seen.

    earliest[key] becomes the time of the first event of any instance of the key, where it is less.
    """
    touched = counters[TOUCHED]
    size = ring.shape[0] // (ENTRY * (steps - 1))
    waiting = 0
    for top in range(steps - 1):
        for later in range(top + 1, steps):
            scratch[MOMENT, later] = now  # or after it
        for n in range(tails[top], counts[top]):
            place = (top * size + (n & (size - 1))) * ENTRY
            key = ring[place + KEY]
            if n <= records[(key * steps + top + 1) * RECORD + TO]:
                continue
            level = top
            _enter(level, n, n - 1, steps, gaps, tails, scratch)
            while True:
                level = _next_path(level, top, steps, gaps, tails, ring, counters, scratch)
                if level > top:
                    break
                waiting += 1
                earliest[key] = min(earliest[key], scratch[MOMENT, 0])
    counters[TOUCHED] = touched
    return waiting
