"""The end of a task's workspace, with review, approval question and diffs."""
