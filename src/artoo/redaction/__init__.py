"""Removal of secrets from logs, events, results and messages, by format, by name, or by known value."""

from artoo.redaction.redactor import MARK, Redactor, holds_secret, secret_values

__all__ = ["MARK", "Redactor", "holds_secret", "secret_values"]
