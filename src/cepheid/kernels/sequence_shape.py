"""What decides the text of a sequence kernel, and the statuses with which kernels stop."""

from __future__ import annotations

from dataclasses import dataclass

DONE = 0
OUTPUT_FULL = 1
RING_FULL = 2

COUNTERS = ("pushed", "edges", "sequences")


@dataclass(frozen=True, slots=True)
class Between:
    """A negated component between state s and s+1 that only its key and own predicates decide."""

    bit: int
    key_group: int | None
    simple: str


@dataclass(frozen=True, slots=True)
class SequenceShape:
    """All that decides the text of a sequence kernel; everything else is an argument."""

    length: int
    key_groups: tuple[int | None, ...]
    columns: tuple[str, ...]
    simple: tuple[str, ...]
    entry_columns: tuple[tuple[int, ...], ...]
    joint: tuple[tuple[str, ...], ...]
    between: tuple[Between | None, ...]
    before_first: Between | None = None
    window_in_scan: bool = True
    window_in_construction: bool = True
    arrival_order: bool = False
    factorised: bool = False
    undoable: bool = True
    counting: bool = False

    @property
    def groups(self) -> int:
        """How many key arrays the kernel reads."""
        used = [g for g in self.key_groups if g is not None]
        used += [b.key_group for b in self.negations if b.key_group is not None]
        return max(used, default=-1) + 1

    @property
    def negations(self) -> tuple[Between, ...]:
        """The negated components the kernel decides itself."""
        found = [b for b in self.between if b is not None]
        return (*found, self.before_first) if self.before_first else tuple(found)

    @property
    def counts_first_events(self) -> bool:
        """Whether first events of a key are numbered, so that a range of them needs no search."""
        return self.factorised and self.length > 2

    def entry_fields(self, state: int) -> tuple[str, ...]:
        """The numbers of an entry, which lie side by side: one line of the cache holds them."""
        fields = ["t", "row", "prev"]
        if state:
            fields += ["rip", "mst"]
            if self.between[state - 1]:
                fields.append("nb")
        elif self.before_first:
            fields.append("ns")
        if self.counts_first_events and state < 2:
            fields.append("nth" if state == 0 else "rip_nth")
        if self.undoable:
            fields.append("key")
        if self.arrival_order:
            fields.append("o")
        return tuple(fields)

    def entry_shift(self, state: int) -> int:
        """An entry takes 2 to this power numbers of its ring."""
        return (len(self.entry_fields(state)) - 1).bit_length()

    def rings(self, state: int) -> tuple[tuple[str, str], ...]:
        """Name and dtype of a state's arrays: the ring, and the attributes of its entries."""
        columns = [(f"e{c}_{state}", self.columns[c]) for c in self.entry_columns[state]]
        return ((f"r{state}", "int64"), *columns)

    @property
    def in_blocks(self) -> bool:
        """Whether a block of events is dealt out to the states, which take theirs in turn.

        Negatives are known by their two latest times, arrival order by what was pushed before:
        neither can be looked up for a moment in the past.
        """
        return self.length > 1 and not self.negations and not self.arrival_order

    def arguments(self) -> tuple[str, ...]:
        """The kernel's arguments, in order; the engine builds its call from this list."""
        names = ["begin", "end", "emit", "W", "prune_to", "order_base", "control", "counters"]
        names += ["mask", "t", "row", "row_base", "ci", "cf"]
        if self.in_blocks:
            names += ["dealt", "block"]
        names += [f"k{g}" for g in range(self.groups)]
        names += [f"c{c}" for c in range(len(self.columns))]
        for state in range(self.length - 1):
            names.append(f"h{state}")
            names += [name for name, _ in self.rings(state)]
        for negation in self.negations:
            names += [f"last{negation.bit}", f"before{negation.bit}"]
        if self.factorised:
            names += [f"out{s}" for s in range(1, self.length)]
            names += ["out_from", "out_count", "listed"]
        else:
            names += [f"out{s}" for s in range(self.length)]
        return tuple(names)
