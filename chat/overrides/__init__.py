"""Subclasses that change the internals of other libraries. Each says what it gains."""
