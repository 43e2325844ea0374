"""Rendering: the same safe HTML for a page and for a stream."""
