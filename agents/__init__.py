"""The agent engine: it takes conversations and yields events. It uses no Django, no database and no sockets."""
