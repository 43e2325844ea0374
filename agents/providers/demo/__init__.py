"""The demo agent. It needs no API key: its answers with tools, reasoning and errors are scripted."""
