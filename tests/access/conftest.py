"""Fixtures for tests of who may do what."""

from tests.access.people import people

__all__ = ["people"]
