"""Fixtures of this folder."""

from __future__ import annotations

from task_world import either, world

__all__ = ["either", "world"]
