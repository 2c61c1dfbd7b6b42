"""One module for each command, the table of commands, shared options, and the exit codes."""
