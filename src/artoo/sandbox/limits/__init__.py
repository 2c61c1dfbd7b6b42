"""Limits of a sandbox: system calls, memory, processes, disk."""
