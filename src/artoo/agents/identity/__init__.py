"""The identity of each agent, with its file, its folder, and the registry of trust levels and pauses."""
