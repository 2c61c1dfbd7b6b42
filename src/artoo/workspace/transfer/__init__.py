"""Change sets on their way from one machine to another."""
