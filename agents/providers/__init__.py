"""One adapter per model vendor, with a common protocol. Each has two pure mappings around one call of an SDK."""
