"""The files that a task sees and changes: the overlay on disk, files, the change set, apply and undo, git,
settlement."""
