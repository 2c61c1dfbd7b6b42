"""Shared-store functions of a runtime, with names of projects, upload and reading of logs."""
