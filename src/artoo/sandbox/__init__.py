"""Confines commands by backends, a supervisor in the sandbox, limits, an allow-list for reading, and a proxy."""
