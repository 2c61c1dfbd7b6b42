"""Access to single paths through directory descriptors. Links in a path are never followed."""
