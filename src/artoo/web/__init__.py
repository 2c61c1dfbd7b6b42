"""The web UI, which shows the logs and databases of a home, and offers the terminal's commands (SPEC section 14).

This package is imported only by `artoo web` and `artoo serve --web`.
"""
