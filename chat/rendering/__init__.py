"""HTML for pages and live frames: Markdown, messages and plain texts."""
