"""OpenAI and compatible servers: the Responses API and Chat Completions."""
