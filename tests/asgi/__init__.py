"""Tests of the layers that handle a connection before Django."""
