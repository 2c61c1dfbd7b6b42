"""Fixtures of this folder."""

from __future__ import annotations

from sandbox_world import any_overlay, sandbox, world
from view_world import any_view, view

__all__ = ["any_overlay", "any_view", "sandbox", "view", "world"]
