"""The user's extensions, such as hooks, notifications, slash commands and background tasks."""
