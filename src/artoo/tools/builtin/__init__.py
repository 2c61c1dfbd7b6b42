"""The built-in tools, one module each, with their descriptions for models, limits and timeouts."""
