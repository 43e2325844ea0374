"""Tests of operating Parley: settings, checks, the server process and its commands."""
