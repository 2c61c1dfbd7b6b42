"""artoo among foreign agents: their work comes onto the board, letters go out to them, with the official SDK."""
