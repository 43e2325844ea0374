"""The rules of a run: the lease that a worker holds, and the pure reducer from agent events to row changes."""
