"""Questions to the user, answered by policies, by a terminal or by another window."""
