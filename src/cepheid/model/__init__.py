"""Words every part shares: the catalogue, time, options, diagnostics; imports nothing of ours."""
