"""Django's SQLite backend, for a process in which many threads write."""
