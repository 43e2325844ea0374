"""Search services behind a common interface."""
