"""NEXT (Schultz-Møller, Migliavacca, Pietzuch, DEBS 2009): successors, runs and exceptions."""
