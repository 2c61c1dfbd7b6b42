"""The change set of a workspace, read from disk, compared, classified, and bound to a digest."""
