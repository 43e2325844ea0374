"""Periodic jobs: deletion that is due, expired logins, unfinished uploads."""
