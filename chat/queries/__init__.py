"""Read-only queries: what users, API clients and models are shown. Nothing here writes."""
