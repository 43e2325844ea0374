"""Plain texts as a page shows them: user input, terminal output, JSON, figures, differences."""
