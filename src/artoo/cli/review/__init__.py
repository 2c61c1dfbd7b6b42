"""The review of a task's changes on a terminal, and the choice to apply, keep or discard them."""
