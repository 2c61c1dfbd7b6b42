"""Parsers of models' texts, for JSON, fences, thoughts, tool calls, steps and turns."""
