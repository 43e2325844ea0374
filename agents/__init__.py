"""The agent engine: conversations in, events out; it knows nothing of Django, databases or sockets."""
