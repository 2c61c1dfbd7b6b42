"""artoo as an A2A server, with the official SDK. Tasks of foreign agents are added to the team's board."""
