"""The prompts' segments, their order, the shipped texts with their hashes, and the Four Laws."""
