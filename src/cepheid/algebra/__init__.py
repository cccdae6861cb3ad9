"""The one meaning behind every language: pattern nodes (SPEC B3) and typed scalar expressions."""
