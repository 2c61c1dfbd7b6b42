"""The commands of the team: agents, letters, board, `artoo serve`, and the shared store."""
