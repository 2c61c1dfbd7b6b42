"""Limits that hold commands: system calls, memory, processes, disk."""
