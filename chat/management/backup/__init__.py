"""Back the data up into one archive, and restore it: the database, the attached files, workspaces, the secret key."""
