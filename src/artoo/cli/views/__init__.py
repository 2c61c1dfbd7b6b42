"""The layout of logs, replays, memory, audit and team, as lines of text and as JSON."""
