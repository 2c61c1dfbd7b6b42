"""The web page: a tap on the logs and stores of a home, and the terminal's commands (SPEC section 14).

Nothing here is imported unless `artoo web` or `artoo serve --web` is called.
"""
