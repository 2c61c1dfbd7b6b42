"""The web UI of a home, with pages, routes, login, live events and task index.

It shows the logs and databases of a home, and offers the terminal's commands (SPEC section 14).

This package is imported only by `artoo web` and `artoo serve --web`.
"""
