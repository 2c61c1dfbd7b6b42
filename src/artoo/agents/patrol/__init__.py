"""The patrol of HEARTBEAT.md, with its parser, its conditions, and the state of each item."""
