"""What a workspace changes: read from its upper directory, compared, classified, and bound to a digest."""
