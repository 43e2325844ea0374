"""Parley's tests."""
