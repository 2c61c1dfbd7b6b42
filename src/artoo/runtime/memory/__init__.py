"""Shared memory of a runtime, with its opening, its background Dreamer, and corrections after discards."""
