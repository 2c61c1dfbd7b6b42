"""The review of a task's changes, and the user's choice to apply, keep or discard them."""
