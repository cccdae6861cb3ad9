"""How the manager waits for a process: it goes on answering, and may have to break off.

Whoever waits calls `attend` every now and then. That answers clients who only want to know how
things stand, and raises one of these where waiting on is not what is wanted.
"""

from __future__ import annotations

from typing import Protocol


class Interrupted(Exception):
    """The batch under way is to be done after an order that came meanwhile, from the beginning."""


class Ending(Exception):
    """The manager ends now: what is under way is done by the next one, as after a kill."""


class Attend(Protocol):
    """Called while the manager waits."""

    def __call__(self, *, may_interrupt: bool) -> None:
        """`may_interrupt` says that what is waited for can be begun anew."""
        ...


def attend_nobody(*, may_interrupt: bool) -> None:
    """For a manager without clients."""
