"""Write sessions, and all data of one user, as files."""
