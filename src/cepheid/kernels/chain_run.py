"""Plain chains `A ; B ; C ...` with one key, or none: some tens of instructions for each event.

The waiting instances of a key are never written out. Each step but the last has a stack of entries,
an event each, linked by key as in SASE's Active Instance Stacks. An event that comes for step s
takes all entries of step s - 1 that wait for its key (SPEC A1.4: it is their immediate successor),
and these follow one another: they are those from the time of the last event that came for it on. So
its own entry names the newest one it took and that time, and stands for all instances that go on
with it. An entry is taken once, by simultaneous events together: those of the time at which entries
were taken last take the same ones again (SPEC D20). No entry takes, or is taken at, its own time.

Only the last step follows the links down, to write matches. Windows are tested there; on the way up
they only keep out what cannot match any more. As an entry is taken once, this costs no more than
the entries did, besides the matches.

Entries are numbered from 1 and never again; entry n of a step lies at place n modulo the size of
its part of the ring. What lies below the tail is gone.
  ring     entries of each step: [time, event, before, newest, since, key]; before is the one before
           of its key, newest and since are the newest it took and the time from which on it took
  records  what an event of a key meets in each step: the newest entry of the step before and its
           time, then when entries were taken last, and when before that
  counts   the next entry's number, by step; entries of the last step go when they are written out
  tails    the number of the oldest entry of the step before
  waits    how old an entry of the step before may be
  gaps     for each pair of steps i < j how far apart their events may be
This serves every query, compiled once. Its twin is tests/oracle/denotation.py.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import allocating, compiled, inlined_early
from cepheid.kernels.processor import lowest_bit, prefetch

TIME, EVENT, BEFORE, NEWEST, SINCE, KEY = range(6)
ENTRY = 8
"""Numbers from one entry to the next: a line of the cache."""
HEAD, WHEN, AT, LAST = range(4)
RECORD = 4

CURSOR, LOW, MOMENT, PATH, SCRATCH = range(5)
"""Rows of the scratch space of a way down, a column for each step."""

TOUCHED, STARTED, FINISHED = range(3)
"""Counters: entries looked at, entries made, matches found."""

FAR = 2**61
"""A gap that is none; it is also added to times, so that an array of zeros tells of none yet."""

_AT_ONCE = 64
_AHEAD = 12
_U = np.uint64
_I = np.int64
_ENTRY_SHIFT, _RECORD_SHIFT = np.uint64(3), np.uint64(2)


@allocating
def wider(rows, needed):  # type: ignore[no-untyped-def]
    """The same rows with room for `needed` of them."""
    if needed <= rows.shape[0]:
        return rows
    more = np.empty((max(needed, 2 * rows.shape[0]), rows.shape[1]), np.int64)
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            more[row, column] = rows[row, column]
    return more


@allocating
def run(  # type: ignore[no-untyped-def]
    mask, times, keys, first, numbered, steps, gaps, waits, dead, records, counts, tails, ring, out,
    counters, scratch,
):  # fmt: skip
    """Take events in order of time; the ring and the output, which may grow, and the rows in it.

    Bit s of a mask says that an event may come for step s, bit steps + s that it may go on from
    there. Event i has the number numbered[i], or first + i where nothing is numbered.
    """
    begin = 0
    rows = 0
    started = 0
    for s in range(steps - 1):
        started -= counts[s]
    while begin < mask.shape[0]:
        begin = _advance(
            begin, mask, times, keys, first, numbered, steps, waits, records, counts, tails, ring
        )
        level = -1
        while tails[steps] < counts[steps - 1]:
            out = wider(out, rows + steps)
            level, rows = _written(level, steps, gaps, counts, tails, ring, out, rows, counters,
                scratch)  # fmt: skip
        if begin < mask.shape[0]:
            ring = _with_room(ring, counts, tails, waits, dead, times[begin])
    for s in range(steps - 1):
        started += counts[s]
    counters[STARTED] += started
    counters[FINISHED] += rows // steps
    return ring, out, rows


# Most of what an event meets is a matter of chance: its step, whether anything waits, whether that
# is too old. So its entry is always written, where the next one will lie if it is not to be, and
# what is not so is left as it was, by masks instead of jumps, each of which would be guessed wrong
# half of the time. No array is replaced in the loops: references to it would be counted in each.


@compiled
def _advance(  # type: ignore[no-untyped-def]
    begin, mask, times, keys, first, numbered, steps, waits, records, counts, tails, ring
):
    """Take events from `begin` on until a part of the ring is full; which one is next."""
    candidates = (_U(1) << _U(steps)) - _U(1)
    size = _U(ring.shape[0]) // _U(ENTRY * steps)
    inside = size - _U(1)
    most = _I(size) - _AT_ONCE
    events = mask.shape[0]
    is_numbered = numbered.shape[0] > 0
    for i in range(begin, events):
        x = _U(i)
        if x & _U(_AT_ONCE - 1) == _U(0) or i == begin:
            for s in range(steps):
                if counts[s] - tails[s + 1] > most:
                    return i
        ahead = keys[_U(min(i + _AHEAD, events - 1))] * (steps + 1) * RECORD
        prefetch(records, ahead)  # type: ignore[call-arg]
        prefetch(records, ahead + ENTRY)
        now = times[x] + FAR
        event = numbered[x] if is_numbered else first + i
        bits = _U(mask[x])
        steps_open = bits & candidates
        key = keys[x]
        while steps_open:
            s = _U(lowest_bit(steps_open))
            steps_open &= steps_open - _U(1)
            record = (_U(key * (steps + 1)) + s) << _RECORD_SHIFT
            newest = records[record]
            when = records[record + _U(WHEN)]
            since = records[record + _U(AT)]
            since ^= (since ^ records[record + _U(LAST)]) & -_I(since == now)
            records[record + _U(AT)] = now
            records[record + _U(LAST)] = since
            tail = tails[s]
            while when >= now and newest >= tail:  # ties never follow
                below = (s - _U(1)) * size
                newest = ring[((below + (_U(newest) & inside)) << _ENTRY_SHIFT) + _U(BEFORE)]
                when = ring[(below + (_U(newest) & inside)) << _ENTRY_SHIFT]
            takes = (_I(newest >= tail) & _I(when >= since)) | _I(s == _U(0))
            goes_on = -(takes & _I(bits >> (_U(steps) + s)) & _I(now - when <= waits[s]))
            n = counts[s]
            place = (s * size + (_U(n) & inside)) << _ENTRY_SHIFT
            above = record + _U(RECORD)
            ring[place] = now
            ring[place + _U(EVENT)] = event
            ring[place + _U(BEFORE)] = records[above]
            ring[place + _U(NEWEST)] = newest
            ring[place + _U(SINCE)] = since
            ring[place + _U(KEY)] = key
            records[above] ^= (records[above] ^ n) & goes_on
            records[above + _U(WHEN)] ^= (records[above + _U(WHEN)] ^ now) & goes_on
            counts[s] = n - goes_on
    return events


@inlined_early
def _enter(step, newest, since, steps, gaps, scratch):  # type: ignore[no-untyped-def]
    """Begin with the entries of a step that one above has taken; the steps above are known."""
    low = since
    for later in range(step + 1, steps):
        low = max(low, scratch[MOMENT, later] - gaps[step, later])
    scratch[CURSOR, step] = newest
    scratch[LOW, step] = low


@inlined_early
def _next_path(level, top, steps, gaps, tails, ring, counters, scratch):  # type: ignore[no-untyped-def]
    """Go on to the next way down from step `top` to the first; 0, or top + 1 when there is none.

    `level` is where to go on: `top` at the beginning, then what the call before has returned.
    """
    size = ring.shape[0] // (ENTRY * steps)
    inside = _U(size - 1)
    while level <= top:
        n = scratch[CURSOR, level]
        if n >= tails[level + 1]:
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
                _enter(level, newest, since, steps, gaps, scratch)
                continue
        level += 1
    return level


@compiled
def _written(level, steps, gaps, counts, tails, ring, out, rows, counters, scratch):  # type: ignore[no-untyped-def]
    """Write the matches of the last step's entries; it stops after the last, or for want of room.

    `level` is -1 to begin with the next entry, or where to go on with it.
    """
    last = steps - 1
    size = ring.shape[0] // (ENTRY * steps)
    while tails[steps] < counts[last]:
        place = (last * size + (tails[steps] & (size - 1))) * ENTRY
        if level < 0:
            level = last - 1
            scratch[MOMENT, last] = ring[place]
            _enter(level, ring[place + NEWEST], ring[place + SINCE], steps, gaps, scratch)
        while rows + steps <= out.shape[0]:
            level = _next_path(level, last - 1, steps, gaps, tails, ring, counters, scratch)
            if level == last:
                break
            for step in range(last):
                out[rows + step, 0] = step
                out[rows + step, 1] = scratch[PATH, step]
            out[rows + last, 0] = last
            out[rows + last, 1] = ring[place + EVENT]
            rows += steps
        if level < last:
            break
        level = -1
        tails[steps] += 1
    return level, rows


@allocating
def _with_room(ring, counts, tails, waits, dead, now):  # type: ignore[no-untyped-def]
    """Let go of entries that are too old for every match; a larger ring where that is not enough.

    Entries up to the time `dead` belong to no instance.
    """
    steps = counts.shape[0]
    size = ring.shape[0] // (ENTRY * steps)
    needed = size
    for s in range(steps - 1):
        old = max(dead, now - waits[s + 1] - 1) + FAR
        tail = tails[s + 1]
        while tail < counts[s] and ring[(s * size + (tail & (size - 1))) * ENTRY] <= old:
            tail += 1
        tails[s + 1] = tail
        while 4 * (counts[s] - tail + _AT_ONCE) > 3 * needed:
            needed *= 2  # a part of it stays free, so that this is not done all the time
    if needed == size:
        return ring
    larger = np.zeros(steps * needed * ENTRY, np.int64)
    for s in range(steps - 1):
        for n in range(tails[s + 1], counts[s]):
            of = (s * size + (n & (size - 1))) * ENTRY
            to = (s * needed + (n & (needed - 1))) * ENTRY
            for cell in range(ENTRY):
                larger[to + cell] = ring[of + cell]
    return larger


@compiled
def survey(  # type: ignore[no-untyped-def]
    now, steps, gaps, records, counts, tails, ring, counters, scratch, by_key
):
    """How many instances wait when all events before `now` were seen, and when the first began.

    Where `by_key` has room for the keys, it gets the beginning of the first instance of each.
    """
    touched = counters[TOUCHED]
    size = ring.shape[0] // (ENTRY * steps)
    waiting = 0
    earliest = _I(FAR)
    for top in range(steps - 1):
        for later in range(top + 1, steps):
            scratch[MOMENT, later] = now + FAR  # or after it
        for n in range(tails[top + 1], counts[top]):
            place = (top * size + (n & (size - 1))) * ENTRY
            key = ring[place + KEY]
            if ring[place] < records[(key * (steps + 1) + top + 1) * RECORD + AT]:
                continue
            _enter(top, n, _I(0), steps, gaps, scratch)
            if ring[place] < scratch[LOW, top]:
                continue
            scratch[MOMENT, top] = ring[place]
            level = top - 1
            if top:
                _enter(level, ring[place + NEWEST], ring[place + SINCE], steps, gaps, scratch)
            while True:
                if top:
                    level = _next_path(level, top - 1, steps, gaps, tails, ring, counters, scratch)
                    if level == top:
                        break
                waiting += 1
                began = scratch[MOMENT, 0] - FAR
                earliest = min(earliest, began)
                if by_key.shape[0]:
                    by_key[key] = min(by_key[key], began)
                if not top:
                    break
    counters[TOUCHED] = touched
    return waiting, earliest
