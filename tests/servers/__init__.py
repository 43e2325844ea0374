"""Tests of the web servers: the limits of connections, and the main flows on both servers."""
