"""artoo's sentences in the user's language, for the command line, the web UI and protocols."""
