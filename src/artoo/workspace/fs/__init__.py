"""Names and states of single paths, through directory descriptors.

Links in a path are never followed.
"""
