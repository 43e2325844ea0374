"""Parley's own form of a conversation, validated, and changed for the import."""
