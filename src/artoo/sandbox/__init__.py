"""Confinement of commands: backends, the supervisor inside the sandbox, limits, reading by allow-list, network."""
