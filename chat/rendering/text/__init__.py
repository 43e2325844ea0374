"""Plain texts for pages: user input, terminal output, JSON, numbers and differences."""
