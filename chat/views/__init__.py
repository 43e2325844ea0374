"""The pages. Each view checks access, reads through queries or calls a service, and renders. No view writes rows."""
