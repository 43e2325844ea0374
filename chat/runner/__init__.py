"""Runners: they claim sessions, run agents, turn the agents' events into rows and deltas, and generate titles."""
