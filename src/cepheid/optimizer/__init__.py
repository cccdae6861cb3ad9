"""Rewriting a pattern into a cheaper one that means the same."""
