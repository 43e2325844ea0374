"""Events of sessions and how they travel between processes: the publisher, the in-memory layer and wake-ups."""
