"""Tests of several servers on PostgreSQL, with concurrent writers and a database that restarts."""
