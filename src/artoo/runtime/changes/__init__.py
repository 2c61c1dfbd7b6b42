"""Pending, applied and undone changes of ended tasks, with their history and their recovery at startup."""
