"""artoo as an MCP server: tools over the intake, with the official SDK."""
