"""The web servers that Parley comes with, uvicorn and Daphne: what each lacks of bounds, and how they are run."""
