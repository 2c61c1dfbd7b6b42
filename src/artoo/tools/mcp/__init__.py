"""The client of MCP servers, with settings, connections, tools, resources, login and repair."""
