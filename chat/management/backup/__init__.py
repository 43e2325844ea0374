"""Back up and restore all data in one archive: the database, attached files, workspaces, and the secret key."""
