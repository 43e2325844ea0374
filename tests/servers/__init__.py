"""Proofs of the web servers: what connections may take of them, and that people are served on both."""
