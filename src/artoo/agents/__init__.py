"""The standing agents of a home, with identity, board, mail, heartbeat, patrol, dream cycle and database."""
