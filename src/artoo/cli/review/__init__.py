"""The review of a task: its changes, and the choice of the user."""
