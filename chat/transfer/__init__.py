"""Import and export conversations."""
