"""The only code that writes rows: keyword-only synchronous functions, one transaction each."""
