"""The client of MCP servers: their configuration, connections and tools. docs/mcp.md is the guide for operators."""
