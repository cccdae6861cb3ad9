"""Matches on their way out: files, tables in the terminal, callbacks, and a text's own sinks."""
