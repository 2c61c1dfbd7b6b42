"""A task's workspace on disk, with files, change set, apply and undo, git, and settlement."""
