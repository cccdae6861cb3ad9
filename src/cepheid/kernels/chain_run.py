"""Plain chains `A ; B ; C ...` with one key, or none: some tens of instructions for each event.

The waiting instances of a key are never written out. Each step but the last has a stack of entries,
an event each, linked by key as in SASE's Active Instance Stacks. An event that comes for step s
takes all entries of step s - 1 that wait for its key (SPEC A1.4: it is their immediate successor),
and these follow one another: they are those since the last event that took some. So its own entry
names the newest one it took and the last one it did not, and stands for all instances that go on
with it. An entry is taken once, by simultaneous events together: those of the time at which entries
were taken last take the same ones again (SPEC D20). No entry takes, or is taken at, its own time.

Only the last step follows the links down, to write matches. Windows are tested there; on the way up
they only keep out what cannot match any more. As an entry is taken once, this costs no more than
the entries did, besides the matches.

Entries are numbered from 1 and never again; entry n of a step lies at place n modulo the size of
its part of the ring. What lies below the tail is gone.
  ring     entries of each step: [time, event, before, newest, since, key]; that of the last step
           holds nothing, but is written to
  records  what an event of a key meets in each step: the newest entry of the step before and its
           time, then of the last taking its time, from where and up to where; one more for the rest
  counts   the next entry's number, by step
  tails    the number of the oldest entry of the step before
  waits    how old an entry of the step before may be
  gaps     for each pair of steps i < j how far apart their events may be
This serves every query, compiled once. Its twin is tests/oracle/denotation.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cepheid.kernels.match_nodes import wider
from cepheid.kernels.processor import lowest_bit, prefetch

TIME, EVENT, BEFORE, NEWEST, SINCE, KEY = range(6)
HEAD, WHEN, AT, FROM, TO = range(5)
LINE = 8
"""Numbers from one entry or record to the next: a line of the cache."""
_SHIFT = np.uint64(3)

CURSOR, FLOOR, LOW, MOMENT, PATH, SCRATCH = range(6)
"""Rows of the scratch space of a way down, a column for each step."""

TOUCHED, STARTED, FINISHED = range(3)
"""Counters: entries looked at, entries made, matches found."""

FAR = 2**61
"""A gap that is none, and a time that never comes; sums with times stay below 2**63."""

_AT_ONCE = 64
_AHEAD = 16
_U = np.uint64
_I = np.int64


# Most of what an event meets is a matter of chance: its step, whether anything waits, whether that
# is too old. So all is done as if it took and waited, and what is not so is left as it was, by
# masks instead of jumps, each of which would be guessed wrong half of the time. The entry that is
# not to be lies where the next one will.


@njit(cache=True, nogil=True)
def run(  # type: ignore[no-untyped-def]
    mask, times, keys, first, numbered, steps, gaps, waits, dead, records, counts, tails, ring,
    finals, out, counters, scratch,
):  # fmt: skip
    """Take events in order of time; the ring and the output, which may grow, and the rows in it.

    Bit s of a mask says that an event may come for step s, bit steps + s that it may go on from
    there. Event i has the number numbered[i], or first + i where nothing is numbered. `finals` has
    room for all of them.
    """
    begin = 0
    rows = 0
    while begin < mask.shape[0]:
        begin, ended = _advance(
            begin, mask, times, keys, first, numbered, steps, waits, records, counts, tails, ring,
            finals,
        )  # fmt: skip
        final, level = 0, -1
        while final < ended:
            out = wider(out, rows + steps)
            final, level, rows = _written(
                final, level, finals, ended, steps, gaps, tails, ring, out, rows, counters, scratch
            )
        if begin < mask.shape[0]:
            ring = _with_room(ring, counts, tails, waits, dead, times[begin])
    counters[FINISHED] += rows // steps
    return ring, out, rows


@njit(cache=True, nogil=True)
def _advance(  # type: ignore[no-untyped-def]
    begin, mask, times, keys, first, numbered, steps, waits, records, counts, tails, ring, finals
):
    """Take events from `begin` on until the ring is full; which is next, and how many ended some.

    What an event takes in the last step is noted in `finals`. No array is replaced in here: that
    would count references to it at every event.
    """
    last = steps - 1
    candidates = (_U(1) << _U(steps)) - _U(1)
    size = _U(ring.shape[0]) // _U(LINE * steps)
    inside = size - _U(1)
    most = _I(size) - _AT_ONCE
    events = mask.shape[0]
    is_numbered = numbered.shape[0] > 0
    ended = 0
    for i in range(begin, events):
        x = _U(i)
        if x & _U(_AT_ONCE - 1) == _U(0) or i == begin:
            for s in range(last):
                if counts[s] - tails[s + 1] > most:
                    return i, ended
        ahead = keys[_U(min(i + _AHEAD, events - 1))] * (steps + 1) * LINE
        prefetch(records, ahead)  # type: ignore[call-arg]
        now = times[x]
        event = numbered[x] if is_numbered else first + i
        bits = _U(mask[x])
        steps_open = bits & candidates
        key = keys[x]
        while steps_open:
            s = _U(lowest_bit(steps_open))
            steps_open &= steps_open - _U(1)
            record = (_U(key * (steps + 1)) + s) << _SHIFT
            newest = records[record]
            when = records[record + _U(WHEN)]
            at = records[record + _U(AT)]
            begins = records[record + _U(FROM)]
            since = records[record + _U(TO)]
            before = since ^ ((since ^ begins) & -_I(at == now))
            floor = max(before, tails[s] - 1)
            while when >= now and newest > floor:  # ties never follow
                below = (s - _U(1)) * size
                newest = ring[((below + (_U(newest) & inside)) << _SHIFT) + _U(BEFORE)]
                when = ring[(below + (_U(newest) & inside)) << _SHIFT]
            takes = -(_I(newest > floor) | _I(s == _U(0)))
            records[record + _U(AT)] = at ^ ((at ^ now) & takes)
            records[record + _U(FROM)] = begins ^ ((begins ^ before) & takes)
            records[record + _U(TO)] = since ^ ((since ^ newest) & takes)
            goes_on = takes & -_I((bits >> (_U(steps) + s)) & _U(1)) & -_I(now - when <= waits[s])
            n = counts[s]
            place = (s * size + (_U(n) & inside)) << _SHIFT
            above = record + _U(LINE)
            ring[place] = now
            ring[place + _U(EVENT)] = event
            ring[place + _U(BEFORE)] = records[above]
            ring[place + _U(NEWEST)] = newest
            ring[place + _U(SINCE)] = before
            ring[place + _U(KEY)] = key
            records[above] ^= (records[above] ^ n) & goes_on
            records[above + _U(WHEN)] ^= (records[above + _U(WHEN)] ^ now) & goes_on
            counts[s] = n - goes_on
            final = _U(ended) << _U(2)
            finals[final] = now
            finals[final + _U(EVENT)] = event
            finals[final + _U(2)] = newest
            finals[final + _U(3)] = before
            ended += _I(s == _U(last)) & goes_on & 1
    return events, ended


@njit(cache=True, nogil=True)
def _written(  # type: ignore[no-untyped-def]
    final, level, finals, ended, steps, gaps, tails, ring, out, rows, counters, scratch
):
    """Write the matches of `finals` from one on; where it stopped, at the end or for want of room.

    `level` is -1 to begin with one, or where to go on.
    """
    last = steps - 1
    while final < ended:
        if level < 0:
            level = last - 1
            scratch[MOMENT, last] = finals[4 * final]
            newest, since = finals[4 * final + 2], finals[4 * final + 3]
            _enter(level, newest, since, steps, gaps, tails, scratch)
        while rows + steps <= out.shape[0]:
            level = _next_path(level, last - 1, steps, gaps, tails, ring, counters, scratch)
            if level == last:
                break
            for step in range(last):
                out[rows + step, 0] = step
                out[rows + step, 1] = scratch[PATH, step]
            out[rows + last, 0] = last
            out[rows + last, 1] = finals[4 * final + 1]
            rows += steps
        if level < last:
            break
        level = -1
        final += 1
    return final, level, rows


@njit(cache=True, nogil=True, inline="always")
def _enter(step, newest, since, steps, gaps, tails, scratch):  # type: ignore[no-untyped-def]
    """Begin with the entries of a step that one above has taken; the steps above are known."""
    low = np.int64(-FAR)
    for later in range(step + 1, steps):
        low = max(low, scratch[MOMENT, later] - gaps[step, later])
    scratch[CURSOR, step] = newest
    scratch[FLOOR, step] = max(since, tails[step + 1] - 1)
    scratch[LOW, step] = low


@njit(cache=True, nogil=True, inline="always")
def _next_path(level, top, steps, gaps, tails, ring, counters, scratch):  # type: ignore[no-untyped-def]
    """Go on to the next way down from step `top` to the first; 0, or top + 1 when there is none.

    `level` is where to go on: `top` at the beginning, then what the call before has returned.
    """
    size = ring.shape[0] // (LINE * steps)
    inside = _U(size - 1)
    while level <= top:
        n = scratch[CURSOR, level]
        if n > scratch[FLOOR, level]:
            place = (_U(level * size) + (_U(n) & inside)) << _SHIFT
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
def _with_room(ring, counts, tails, waits, dead, now):  # type: ignore[no-untyped-def]
    """Let go of entries that are too old for every match; a larger ring where that is not enough.

    Entries up to the time `dead` belong to no instance.
    """
    steps = counts.shape[0]
    size = ring.shape[0] // (LINE * steps)
    needed = size
    for s in range(steps - 1):
        old = max(dead, now - waits[s + 1] - 1)
        tail = tails[s + 1]
        while tail < counts[s] and ring[(s * size + (tail & (size - 1))) * LINE] <= old:
            tail += 1
        tails[s + 1] = tail
        while 4 * (counts[s] - tail + _AT_ONCE) > 3 * needed:
            needed *= 2  # a part of it stays free, so that this is not done all the time
    if needed == size:
        return ring
    larger = np.zeros(steps * needed * LINE, np.int64)
    for s in range(steps - 1):
        for n in range(tails[s + 1], counts[s]):
            of = (s * size + (n & (size - 1))) * LINE
            to = (s * needed + (n & (needed - 1))) * LINE
            larger[to : to + LINE] = ring[of : of + LINE]
    return larger


@njit(cache=True, nogil=True)
def survey(  # type: ignore[no-untyped-def]
    now, steps, gaps, records, counts, tails, ring, counters, scratch, by_key
):
    """How many instances wait when all events before `now` were seen, and when the first began.

    Where `by_key` has room for the keys, it gets the beginning of the first instance of each.
    """
    touched = counters[TOUCHED]
    size = ring.shape[0] // (LINE * steps)
    waiting = 0
    earliest = _I(FAR)
    for top in range(steps - 1):
        for later in range(top + 1, steps):
            scratch[MOMENT, later] = now  # or after it
        for n in range(tails[top + 1], counts[top]):
            place = (top * size + (n & (size - 1))) * LINE
            key = ring[place + KEY]
            if n <= records[(key * (steps + 1) + top + 1) * LINE + TO]:
                continue
            level = top
            _enter(level, n, n - 1, steps, gaps, tails, scratch)
            while True:
                level = _next_path(level, top, steps, gaps, tails, ring, counters, scratch)
                if level > top:
                    break
                waiting += 1
                began = scratch[MOMENT, 0]
                earliest = min(earliest, began)
                if by_key.shape[0]:
                    by_key[key] = min(by_key[key], began)
    counters[TOUCHED] = touched
    return waiting, earliest
