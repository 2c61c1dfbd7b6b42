"""artoo as an A2A server: the work of foreign agents comes onto the board, with the official SDK."""
