"""Rows in other forms: pure functions from ChatMessage rows to what models and clients read."""
