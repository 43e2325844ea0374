"""The demo agent, which needs no key: scripted answers with tools, reasoning and errors."""
