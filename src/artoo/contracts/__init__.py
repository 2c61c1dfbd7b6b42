"""The messages between roles, one module for each exchange, with routes and the tree of errors."""
