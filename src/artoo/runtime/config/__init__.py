"""The configuration of an operator, with all settings, their sources, and their defaults."""
