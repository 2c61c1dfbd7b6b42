"""The texts and JSON about results and pending changes, with names of tasks and short paths."""
