"""The tool layer, with interface, registry, command runs, truncation and user functions as tools."""
