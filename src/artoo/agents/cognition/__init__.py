"""The dream cycle of an agent, which turns its repeated observations into a curated knowledge file."""
