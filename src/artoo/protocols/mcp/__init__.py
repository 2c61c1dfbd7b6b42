"""artoo as an MCP server, with the official SDK. Its tools start and query tasks through the intake."""
