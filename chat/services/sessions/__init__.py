"""Create, change, archive, delete and fork sessions."""
