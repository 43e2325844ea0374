"""The web servers of Parley, uvicorn and Daphne, with the limits that each of them lacks."""
