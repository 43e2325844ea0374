"""Tests of what happens to a connection before Django sees it."""
