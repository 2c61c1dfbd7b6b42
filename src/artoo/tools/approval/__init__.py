"""The approval gate of Law 1, with standing permissions, questions and network consent."""
