"""Fixtures of this folder."""

from __future__ import annotations

from living import world

__all__ = ["world"]
