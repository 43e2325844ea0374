"""Proofs of what a team's Parley does on PostgreSQL: several servers, writers at once, a database that restarts."""
