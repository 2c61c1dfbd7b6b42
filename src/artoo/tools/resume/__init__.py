"""Tool calls of a resumed task, with earlier events, interrupted calls and their repetition."""
