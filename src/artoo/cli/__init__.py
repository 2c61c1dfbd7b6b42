"""The command line, with its commands, conversation, progress display, reviews and result texts."""
