"""artoo as a server for other programs by MCP, ACP and A2A, over one shared intake of tasks."""
