"""Parley as an MCP server: its tools for the agents of others. docs/mcp.md is the user's guide."""
