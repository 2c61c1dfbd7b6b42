"""The log of each task on disk, with writer, reader, lock, retention, and reduction to a state."""
