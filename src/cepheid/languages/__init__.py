"""The five languages: each turns its texts into the one algebra, and holds no engine."""
