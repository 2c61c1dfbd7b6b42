"""The conversation at a terminal, with its prompt, slash commands, steering, and questions to the user."""
