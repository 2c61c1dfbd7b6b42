"""Tasks that foreign agents send by A2A, with their limits, messages and push targets."""
