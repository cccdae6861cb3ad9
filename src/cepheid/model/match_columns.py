"""The columns that every table of matches has, whatever its query selects."""

from __future__ import annotations

MATCH_COLUMNS = ("match_id", "query", "start", "end")
