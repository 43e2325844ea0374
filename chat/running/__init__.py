"""Who runs a session, and how a run's events become rows and pushes."""
