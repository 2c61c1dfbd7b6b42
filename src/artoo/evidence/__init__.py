"""Exact facts about a result, found by code without a model, from numbers, tokens and call records."""
