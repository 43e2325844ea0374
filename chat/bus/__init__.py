"""The events of sessions, and their way between processes: the publisher, the in-memory layer and wake-ups."""
