"""A process around the supervisor where there are no namespaces: it confines, checks system calls, and cleans up."""
