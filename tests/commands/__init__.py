"""Proofs of what an operator does and sees: settings, checks, the server process, its commands."""
