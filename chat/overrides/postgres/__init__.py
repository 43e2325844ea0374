"""Django's PostgreSQL backend, with time limits for each connection."""
