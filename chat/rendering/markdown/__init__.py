"""Markdown as safe HTML, for finished texts and for streams."""
