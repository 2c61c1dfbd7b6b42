"""Shared memory over SQLite or PostgreSQL, with recall, writes, sums, the Dreamer's store and checks."""
