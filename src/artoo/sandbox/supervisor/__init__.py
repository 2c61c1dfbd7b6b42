"""The first process of a sandbox, which starts commands inside, and artoo's side of the socket to it."""
