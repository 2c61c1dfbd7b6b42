"""The library object `Artoo`, run options, budgets, models, images, skills, MCP servers and telemetry."""
