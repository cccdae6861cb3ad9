"""Many sequences over one stream, where atoms and keys are too many to have a ring each.

What `shared_sequences.py` does with a ring of events for each atom and key, this does with one ring
for all of them: an event is an entry for each of its atoms, and a table by hash leads to the newest
entry of an atom and key, which leads to the one before it. Whatever is older than every window is
dead wherever it stands, so nothing is ever tidied up. With many atoms most of them have no event of
a key in the window, and a look into the table, small enough to stay in the cache, is all it takes.

Arrays of int64 besides those of `shared_sequences.py`:
  heads    [newest entry, its time] by hash; what is too old to matter need not be removed
  pool     [time, event, key and atom, entry before it in the same place of `heads`]
           by number modulo size
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled, inlined_early
from cepheid.kernels.processor import prefetch
from cepheid.kernels.shared_sequences import (
    DONE,
    ENDINGS,
    FIRST_ENDING,
    FIRST_NEEDED,
    FIRST_STEP,
    FOUND,
    IS_SUCCESSION,
    KEPT,
    KEPT_EVENTS,
    KEY_GROUP,
    NEEDED,
    OUTPUT_FULL,
    POOL_FULL,
    SINCE,
    STEPS,
    TOUCHED,
    UNTIL,
    WINDOW,
)

NEXT, OLDEST, OUT_COUNT, CONTROLS = range(4)
"""Places in `control`: the numbers of the entry to come and of the oldest live one, matches."""

TIME, EVENT, OWNER, BEFORE, ENTRY_WIDTH = range(5)
NUMBER, NEWEST, HEAD_WIDTH = range(3)

_AHEAD = 8
"""How many pairs ahead memory is asked for what they need."""
_NEVER = -(2**62)
_TWO = np.uint64(HEAD_WIDTH)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ATOM = np.uint64(2**32 - 1)
_ALL = np.uint64(2**64 - 1)


@inlined_early
def _owner(key, atom):  # type: ignore[no-untyped-def]
    return np.int64(key) << 32 | np.int64(atom)


@inlined_early
def _slot(owner, shift):  # type: ignore[no-untyped-def]
    """The place of an owner: atoms of one key, which are asked for together, lie side by side."""
    key, atom = np.uint64(owner) >> np.uint64(32), np.uint64(owner) & _ATOM
    return (((key * _MIX) >> np.uint64(shift)) + atom) & (_ALL >> np.uint64(shift))


@inlined_early
def _from(number, pool, owner, time, oldest):  # type: ignore[no-untyped-def]
    """The first entry of an owner before `time`, from a number on down its list; -1 if none."""
    mask = np.uint64(pool.shape[0] - 1)
    while number >= oldest:
        x = np.uint64(number) & mask
        if pool[x, OWNER] == owner and pool[x, TIME] < time:
            return number
        number = pool[x, BEFORE]
    return np.int64(-1)


@compiled
def link(heads, pool, control):  # type: ignore[no-untyped-def]
    """Lead from an empty table to every live entry."""
    shift = _shift(heads)
    mask = pool.shape[0] - 1
    for number in range(control[OLDEST], control[NEXT]):
        slot = _slot(pool[number & mask, OWNER], shift)
        pool[number & mask, BEFORE] = heads[slot, NUMBER]
        heads[slot, NUMBER], heads[slot, NEWEST] = number, pool[number & mask, TIME]


@compiled
def unlink(heads, pool, control, since):  # type: ignore[no-untyped-def]
    """Forget the entries from a time on: they are fed again, with what came late among them."""
    shift = _shift(heads)
    mask = pool.shape[0] - 1
    number = control[NEXT]
    while number > control[OLDEST] and pool[(number - 1) & mask, TIME] >= since:
        number -= 1
        slot = _slot(pool[number & mask, OWNER], shift)
        before = pool[number & mask, BEFORE]
        is_live = before >= control[OLDEST]
        heads[slot, NUMBER] = before
        heads[slot, NEWEST] = pool[before & mask, TIME] if is_live else _NEVER
    control[NEXT] = number


@inlined_early
def _shift(heads):  # type: ignore[no-untyped-def]
    bits = 0
    while (1 << bits) < heads.shape[0]:
        bits += 1
    return 64 - bits


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
    reach,
    atoms,
    queries,
    steps,
    heads,
    pool,
    control,
    counters,
    out,
    scratch,
):
    """As `shared_sequences.run`; entries older than `reach` are dead."""
    low_of, at, moments = scratch[0], scratch[1], scratch[2]
    shift = _shift(heads)
    mask = np.uint64(pool.shape[0] - 1)
    pairs = pair_rows.shape[0]
    next_number, oldest = control[NEXT], control[OLDEST]
    written = control[OUT_COUNT]
    touched = np.int64(0)
    status = DONE
    i = begin
    while i < pairs:
        row = pair_rows[i]
        now = times[row]
        event = numbered[row] if numbered.shape[0] else first + row
        if i + _AHEAD < pairs:
            ahead = pair_atoms[i + _AHEAD]
            group = atoms[ahead, KEY_GROUP]
            key = np.int64(0) if group < 0 else keys[group, pair_rows[i + _AHEAD]]
            prefetch(heads, _slot(_owner(key, ahead), shift) * _TWO)  # type: ignore[call-arg]
            needed = _owner(key, atoms[ahead, FIRST_NEEDED])
            prefetch(heads, _slot(needed, shift) * _TWO)
        if next_number - oldest >= pool.shape[0]:
            past = min(now, safe) - reach
            while oldest < next_number and pool[np.uint64(oldest) & mask, TIME] <= past:
                oldest += 1
            if next_number - oldest >= pool.shape[0]:
                status = POOL_FULL
                break
        atom = np.uint64(pair_atoms[np.uint64(i)])
        group = atoms[atom, KEY_GROUP]
        key = np.int64(0) if group < 0 else keys[group, row]
        before = written
        first_ending = atoms[atom, FIRST_ENDING]
        endings = atoms[atom, ENDINGS] if emit else np.int64(0)
        touched += endings
        for query in range(first_ending, first_ending + endings):
            q = np.uint64(query)
            last = queries[q, STEPS] - 1
            first_step = queries[q, FIRST_STEP]
            low = max(now - queries[q, WINDOW], queries[q, SINCE] - 1)
            number = np.int64(-1)
            if last > 0:
                # Mostly there is no such event. Two steps are looked at before the jump, which
                # nobody could foresee after one.
                owner = _owner(key, queries[q, NEEDED])
                slot = _slot(owner, shift)
                first_slot = _slot(_owner(key, steps[np.uint64(first_step), 0]), shift)
                if (low - heads[slot, NEWEST]) & (low - heads[first_slot, NEWEST]) >= 0:
                    continue
                if key < 0:
                    continue
                number = _from(heads[slot, NUMBER], pool, owner, now, oldest)
                if number < 0:
                    continue
            if now < queries[q, SINCE] or now >= queries[q, UNTIL]:
                continue
            if last == 0:
                if written >= out.shape[0]:
                    status = OUTPUT_FULL
                    break
                out[written, 0] = query
                out[written, 1] = event
                out[written, 2:] = -1
                written += 1
                continue
            is_succession = queries[q, IS_SUCCESSION]
            # A step without any event ends it before the others are walked through in vain.
            is_possible = pool[np.uint64(number) & mask, TIME] > low
            for s in range(last - 1):
                if is_possible:
                    owner = _owner(key, steps[first_step + s, 0])
                    found = _from(heads[_slot(owner, shift), NUMBER], pool, owner, now, oldest)
                    is_possible = found >= 0 and pool[np.uint64(found) & mask, TIME] > low
            if not is_possible:
                continue
            # Backwards, each step from the newest event before that of the step after it.
            s = last
            moments[s] = now
            at[s - 1] = number
            while True:
                low_of[s - 1] = low
                if is_succession:
                    owner = _owner(key, steps[first_step + s, 1])
                    rival = heads[_slot(owner, shift), NUMBER]
                    rival = _from(rival, pool, owner, moments[s], oldest)
                    if rival >= 0:
                        since = pool[np.uint64(rival) & mask, TIME] - 1
                        low_of[s - 1] = max(low, since)
                s -= 1
                while True:
                    number = at[s]
                    is_in = number >= 0
                    if is_in:
                        moments[s] = pool[np.uint64(number) & mask, TIME]
                        is_in = moments[s] > low_of[s]
                    if is_in and s > 0:
                        break
                    if not is_in:
                        s += 1
                        if s == last:
                            break
                    else:
                        if written >= out.shape[0]:
                            status = OUTPUT_FULL
                            break
                        out[written, 0] = query
                        for step in range(last):
                            out[written, 1 + step] = pool[np.uint64(at[step]) & mask, EVENT]
                        out[written, 1 + last] = event
                        out[written, 2 + last :] = -1
                        written += 1
                    # The next older one of this step.
                    x = np.uint64(at[s]) & mask
                    at[s] = _from(pool[x, BEFORE], pool, pool[x, OWNER], now, oldest)
                if s == last or status:
                    break
                owner = _owner(key, steps[first_step + s - 1, 0])
                at[s - 1] = _from(
                    heads[_slot(owner, shift), NUMBER], pool, owner, moments[s], oldest
                )
            if status:
                break
        if status:
            written = before
            touched -= endings
            break
        # Written first and then counted or not: no jump that nobody could foresee.
        is_kept = atoms[atom, KEPT] & ~(key >> 63)
        owner = _owner(key, atom)
        slot = _slot(owner, shift)
        newest = heads[slot, NUMBER]
        x = np.uint64(next_number) & mask
        pool[x, TIME] = now
        pool[x, EVENT] = event
        pool[x, OWNER] = owner
        pool[x, BEFORE] = newest
        heads[slot, NUMBER] = newest ^ ((newest ^ next_number) & -is_kept)
        heads[slot, NEWEST] = now if is_kept else heads[slot, NEWEST]
        next_number += is_kept
        i += 1
    counters[KEPT_EVENTS] += next_number - control[NEXT]
    counters[FOUND] += written - control[OUT_COUNT]
    counters[TOUCHED] += touched
    control[NEXT], control[OLDEST], control[OUT_COUNT] = next_number, oldest, written
    return i, status
