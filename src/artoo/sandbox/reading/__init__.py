"""Decide which files commands may read, by an allow-list for the user's home, and no files that other users may not
read."""
