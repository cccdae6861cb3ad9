"""SASE (Wu, Diao, Rizvi, SIGMOD 2006): sequences with negation, equivalence tests and windows."""
