"""Runs artoo and its peers on public benchmarks that nobody here wrote. Not part of the installed package."""
