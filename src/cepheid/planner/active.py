"""When a query of a running workload sees events: it may come later, and go earlier."""

from __future__ import annotations

from dataclasses import dataclass

BEGINNING_OF_TIME = -(2**61)
END_OF_TIME = 2**61


@dataclass(frozen=True, slots=True)
class Active:
    """The times of the events that a query sees: from `since` on, before `until`.

    Its matches are those it would have if there were no other events, except that nothing becomes
    final at or after `until`: then it is gone.
    """

    since: int = BEGINNING_OF_TIME
    until: int = END_OF_TIME

    def is_over(self, watermark: int) -> bool:
        """Whether it has an end, and no event before it can come any more."""
        return self.until < END_OF_TIME and self.until <= watermark

    @property
    def is_always(self) -> bool:
        """Whether it sees every event."""
        return self.since <= BEGINNING_OF_TIME and self.until >= END_OF_TIME


ALWAYS = Active()
