"""The three control loops (fast, medium, slow), and the code that all roles share."""
