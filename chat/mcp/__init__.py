"""Parley as an MCP server, with tools for agents outside Parley. docs/mcp.md is the user's guide."""
