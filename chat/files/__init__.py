"""What files are, by their bytes: recognised, checked, cleaned and read. Pure: no database, no storage, no settings."""
