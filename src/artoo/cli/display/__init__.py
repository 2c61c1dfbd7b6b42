"""The progress of a task on a terminal, live or as plain lines, with safe output, colours and Ctrl-C."""
