"""The confinement of commands, with backends, supervisor, limits, readable paths, and network."""
