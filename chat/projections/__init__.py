"""Pure functions from ChatMessage rows to what models and clients read."""
