"""ASGI code that runs before Django and Channels: probes, origins, and the size and pace of bodies."""
