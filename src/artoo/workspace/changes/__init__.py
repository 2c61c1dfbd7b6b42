"""The changes of a workspace: read from its upper directory, compared, classified, and bound to a digest."""
