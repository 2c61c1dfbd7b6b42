"""Enforcement of the limits in `ports.workspace`, for system calls, memory, processes and disk."""
