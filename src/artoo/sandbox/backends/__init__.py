"""The backends of the sandbox (bubblewrap, Landlock, seatbelt, none), their choice, and their self-test."""
