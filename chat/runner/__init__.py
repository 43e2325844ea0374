"""Run agents: claim sessions, turn the events of an agent into rows and deltas, generate titles."""
