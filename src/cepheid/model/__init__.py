"""Words every part shares: events, time, matches, diagnostics and errors; imports nothing of ours."""
