"""The limits of a sandbox for system calls, memory, processes and disk."""
