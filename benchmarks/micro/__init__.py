"""Limits of the machine and the other ways to run the same query."""
