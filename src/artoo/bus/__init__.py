"""The message stream in one process, with routing to roles, watchers, queues and lossless taps."""
