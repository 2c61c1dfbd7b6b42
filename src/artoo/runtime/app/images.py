"""Check and store the images of a request, with limits on number and size, and media types.

They are checked before the task starts, stored next to its log, and added to the questions to models.

    <home>/tasks/<task id>/images/<sha256>     the bytes, for a resumed task

Messages refer to an image only by its digest. The bytes are sent only to a model. They are never in messages or log
lines.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from artoo.contracts.conversation import Took
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import AttachedImage, MediaType
from artoo.disk.whole import write_whole
from artoo.ports.model import Answer, Conversation, Known, Model, OnText, Question, Spoken
from artoo.tasklog.layout import images_directory
from artoo.tools.files.text_files import NotPlainFile, read_limited
from artoo.workspace.files.rooted import real_files

logger = logging.getLogger(__name__)
T = TypeVar("T", bound=BaseModel)

MOST_IMAGES = 8
LARGEST_IMAGE = 5 * 1024 * 1024
LARGEST_TOGETHER = 20 * 1024 * 1024
"""Maximum numbers of bytes of one image and of all images of a request. The strictest of the well-known servers
accepts these."""

_FORMATS = "PNG, JPEG, GIF and WebP"
_SIGNATURES: tuple[tuple[bytes, MediaType], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_HEAD = 16


def media_type_of(data: bytes) -> MediaType | None:
    """Return the media type, recognised by the first bytes of an image. Return None if models do not accept this
    type."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((found for sign, found in _SIGNATURES if data.startswith(sign)), None)


def is_image(path: Path) -> bool:
    """Return whether the content of a file is an image that can be attached. Never raises."""
    try:
        head, _ = read_limited(real_files(), path.resolve(), _HEAD)
    except (NotPlainFile, OSError, RuntimeError, ValueError):
        # A cycle of links raises RuntimeError, and a null character in the path raises ValueError.
        return False
    return media_type_of(head) is not None


@dataclass(frozen=True, slots=True)
class Album:
    """The images of one request in order, and their bytes by digest."""

    images: tuple[AttachedImage, ...] = ()
    data: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @classmethod
    def of(cls, given: Sequence[Path | bytes]) -> Album:
        """Read the given files and bytes. Raises ConfigurationError that names the image which cannot be used.
        Blocking."""
        if len(given) > MOST_IMAGES:
            raise ConfigurationError(f"{len(given)} images are attached; at most {MOST_IMAGES} go with one request")
        read = [_read(one, number) for number, one in enumerate(given, 1)]
        together = sum(image.size for image, _ in read)
        if together > LARGEST_TOGETHER:
            raise ConfigurationError(
                f"the images have {_bytes(together)} together; at most {_bytes(LARGEST_TOGETHER)} go with "
                "one request: attach fewer, or smaller ones"
            )
        return cls(tuple(image for image, _ in read), {image.sha256: data for image, data in read})

    @classmethod
    def kept(cls, home: Path, task_id: str, images: Sequence[AttachedImage]) -> Album:
        """Read the images that an earlier process stored. Blocking. Raises ConfigurationError if an image is
        missing or was changed.
        """
        found: dict[str, bytes] = {}
        for image in images:
            path = images_directory(home, task_id) / image.sha256
            try:
                data = path.read_bytes()
            except OSError as error:
                raise ConfigurationError(
                    f"task {task_id} cannot go on: its image {image.name} cannot be read ({path}: "
                    f"{error.strerror}); give the request again with the image"
                ) from error
            if hashlib.sha256(data).hexdigest() != image.sha256:
                raise ConfigurationError(
                    f"task {task_id} cannot go on: its image {image.name} is not what it was ({path}); "
                    "give the request again with the image"
                )
            found[image.sha256] = data
        return cls(tuple(images), found)

    def keep(self, home: Path, task_id: str) -> None:
        """Write the images next to the log, so that only the owner can read them. Blocking."""
        # An error is only logged. If the home cannot be written, there is no log to resume the task from either.
        folder = images_directory(home, task_id)
        try:
            if self.data:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for digest, data in self.data.items():
                write_whole(folder / digest, data, sync=False)
        except OSError as error:
            logger.warning("images of task %s are not kept: %s", task_id, error)

    def shown_to(self, model: Model) -> Model:
        """Return the model, with these images added to the questions that refer to them."""
        return _Showing(model, self) if self.images else model


@dataclass(frozen=True, slots=True)
class _Showing:
    """A model that adds the bytes of images to questions. Implements ports.model.Model."""

    model: Model
    album: Album

    async def ask(self, question: Question[T]) -> Answer[T]:
        urls = tuple(self._url(image) for image in question.images)
        return await self.model.ask(question._replace(pictures=urls) if urls else question)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        shown = [image for each in conversation.messages if not isinstance(each, Took) for image in each.images]
        pictures = {image.sha256: self._url(image) for image in shown}
        return await self.model.converse(replace(conversation, pictures=pictures), on_text)

    def _url(self, image: AttachedImage) -> str:
        return _data_url(image, self.album.data[image.sha256])


def demand_eyes(images: Sequence[AttachedImage], known: Iterable[Known]) -> None:
    """Raise ConfigurationError if there are images and no model accepts images."""
    if images and not any(each.images for each in known):
        raise ConfigurationError(
            "an image is attached, but no configured model is said to take images. If yours does: "
            "artoo config set models.brain.images true (and models.tool.images); the model on this machine "
            "takes none"
        )


def _read(given: Path | bytes, number: int) -> tuple[AttachedImage, bytes]:
    name = f"image {number}" if isinstance(given, bytes) else given.name
    if isinstance(given, bytes):
        data, size = given, len(given)
    else:
        try:
            data, size = read_limited(real_files(), given.expanduser().resolve(), LARGEST_IMAGE + 1)
        except (NotPlainFile, RuntimeError, ValueError) as error:
            # the home of an unknown user, and a cycle of links, raise RuntimeError
            raise ConfigurationError(f"{given} cannot be attached: {error}") from error
        except OSError as error:
            raise ConfigurationError(f"{given} cannot be attached: {error.strerror}") from error
    found = media_type_of(data)
    if found is None:
        raise ConfigurationError(f"{name} is no image that can be attached; {_FORMATS} are taken, by their content")
    if size > LARGEST_IMAGE:
        raise ConfigurationError(
            f"{name} has {_bytes(size)}; at most {_bytes(LARGEST_IMAGE)} can be attached: make it smaller"
        )
    return AttachedImage(name=name, media_type=found, size=size, sha256=hashlib.sha256(data).hexdigest()), data


def _data_url(image: AttachedImage, data: bytes) -> str:
    return f"data:{image.media_type};base64,{base64.b64encode(data).decode('ascii')}"


def _bytes(size: int) -> str:
    return f"{size:,} bytes"
