"""Fixtures for tests of access."""

from tests.access.people import people

__all__ = ["people"]
