"""artoo's own sentences in the user's language, the same on every surface."""
