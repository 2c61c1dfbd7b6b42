"""The review of a task: what it would change, laid before a person, and the person's choice."""
