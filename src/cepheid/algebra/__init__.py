"""The one meaning behind every language: pattern nodes and typed scalar expressions."""
