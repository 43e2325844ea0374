"""Tests of a team of processes that are killed, frozen and restarted while users work."""
