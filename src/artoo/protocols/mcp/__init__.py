"""artoo as an MCP server: tools over the desk, with the official SDK."""
