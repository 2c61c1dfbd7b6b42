"""artoo's own sentences in the user's language, shared by the command line, the web UI and the protocols."""
