"""The rules of a run: the lease of a worker, and the pure reducer from agent events to row changes."""
