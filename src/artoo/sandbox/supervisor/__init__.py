"""The first process of a sandbox, which starts and confines commands, and artoo's client of it."""
