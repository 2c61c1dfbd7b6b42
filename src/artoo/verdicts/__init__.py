"""Decisions on criteria by code, with checks, quotes, JSON Schema, and comparison of answers."""
