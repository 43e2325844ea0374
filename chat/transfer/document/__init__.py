"""Parley's own form of a conversation, its validation, and its changes for an import."""
