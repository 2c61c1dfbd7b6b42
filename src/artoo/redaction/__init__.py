"""Remove secrets from every text that leaves the process: logs, events, results, messages to the terminal."""

from artoo.redaction.redactor import MARK, Redactor, holds_secret, secret_values

__all__ = ["MARK", "Redactor", "holds_secret", "secret_values"]
