"""Metadata of images attached to a request, with media types, but without their bytes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


class AttachedImage(Contract):
    """One image. `name` is the user's name for it, `size` is in bytes; `sha256` names the stored bytes near the
    log."""

    name: str
    media_type: MediaType
    size: int = Field(ge=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
