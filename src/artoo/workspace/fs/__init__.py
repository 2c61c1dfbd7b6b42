"""Single paths through directory descriptors: no step of a path is ever followed through a link."""
