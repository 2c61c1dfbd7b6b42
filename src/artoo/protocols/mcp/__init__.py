"""artoo as an MCP server, with its tools, resources, waiting and transports.

It uses the official SDK. Its tools start and query tasks by the intake.
"""
