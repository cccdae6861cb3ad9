"""What the three figures of the NEXT paper share: random queries, streams, operators, overload."""
