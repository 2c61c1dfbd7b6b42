"""The origin of files and names, with files read, foreign names and matching text."""
