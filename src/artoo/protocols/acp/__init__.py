"""artoo as an editor's agent: sessions over the intake by the Agent Client Protocol, with the official library."""
