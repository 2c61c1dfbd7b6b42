"""Manage the files that a task sees and changes, with overlays on disk, change sets, apply and undo, git, and
settlement."""
