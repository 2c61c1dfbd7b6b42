"""A process around the supervisor without namespaces: it confines, checks system calls, and cleans up."""
