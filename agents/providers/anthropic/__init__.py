"""Anthropic: the Messages API."""
