"""Recognize, validate, clean and read files by their bytes. Pure: no database, storage or settings."""
