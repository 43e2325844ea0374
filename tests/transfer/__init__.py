"""Tests of exporting and importing sessions."""
