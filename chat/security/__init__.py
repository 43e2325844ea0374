"""Hashed session keys, password hashing and encryption of secrets."""
