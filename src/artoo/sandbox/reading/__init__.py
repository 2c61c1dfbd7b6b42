"""Decide what commands may read of the machine: an allow-list of the user's home, and nothing that is closed to
others."""
