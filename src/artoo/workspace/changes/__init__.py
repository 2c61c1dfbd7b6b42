"""Read the changes of a workspace from its upper directories, compare and classify them, and compute a digest."""
