"""The tools of a task, with registry, built-in tools, files, shell, MCP, approval and settlement."""
