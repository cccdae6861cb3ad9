"""What is known of a stream before it is queried: rates, gaps, values; and what follows from it."""
