"""The board of governed tasks, with their states, claims, reviews, and the choice of an agent's next work."""
