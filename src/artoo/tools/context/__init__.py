"""Context for prompts and validators, with project listing, guides, skills and evidence."""
