"""Fixtures of this folder."""

from __future__ import annotations

from sandbox_world import any_overlay, sandbox, world

__all__ = ["any_overlay", "sandbox", "world"]
