"""The pages. Each view checks access, reads through queries or calls a service, and renders; none writes rows."""
