"""A whole team of processes that are killed, frozen and restarted while people work."""
