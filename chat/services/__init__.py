"""The only code that writes rows and asks for publishing: keyword-only synchronous functions, one transaction each."""
