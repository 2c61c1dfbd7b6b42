"""The files of a workspace as its commands see them, read from outside."""
