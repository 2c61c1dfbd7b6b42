"""Atomic and durable writes of files, and syncs of whole file systems."""
