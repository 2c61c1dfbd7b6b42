"""The shared parts of web pages, such as templates, form limits, language cookie and home."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.text import well_formed
from artoo.runtime.app.images import LARGEST_TOGETHER, MOST_IMAGES
from artoo.runtime.config.model import Config
from artoo.tasklog.layout import part_path, task_directory
from artoo.web.index import Indexes
from artoo.web.names import chosen_language, named, why_left
from artoo.web.others import Others, copied
from artoo.web.starting import Starter
from artoo.words.catalogue import Catalogue
from artoo.words.names import led_to
from artoo.words.question import beside
from artoo.words.shown import duration, local_time, printable

LANGUAGE = "artoo_language"
LONGEST_FORM = 1024 * 1024
"""The most bytes of a form. The limit is large, because a request may be long, and a user may choose many paths."""
MOST_FIELDS = 20_000
_MOST_DIGITS = 16

Form = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Site:
    """The state of one running web server. `project`: the default directory in which tasks work."""

    config: Config
    project: Path
    starter: Starter
    indexes: Indexes = field(default_factory=Indexes)
    others: Others = field(default_factory=Others)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def home(self) -> Path:
        """Return artoo's own directory."""
        return self.config.home


def site_of(request: Request) -> Site:
    """Return the site of the application that answers the request."""
    site: object = request.app.state.site
    if not isinstance(site, Site):
        raise TypeError("the application was built without its site")
    return site


def words_of(request: Request) -> Catalogue:
    """Return the catalogue of the response's language."""
    return chosen_language(request.cookies.get(LANGUAGE, ""), request.headers.get("accept-language", ""))


def page(request: Request, template: str, status: int = 200, **values: object) -> Response:
    """Fill in a template. Every value is escaped. Undecodable bytes of a path are written as `\\xe9`."""
    words = words_of(request)
    text = (
        _environment()
        .get_template(template)
        .render({"t": words, "path": request.url.path, "site": site_of(request), **values})
    )
    return HTMLResponse(well_formed(text), status)


async def form_of(request: Request) -> Form:
    """Read the fields of a form, in order. Raises ConfigurationError if the form is too large or malformed."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise ConfigurationError(f"the form is larger than {LONGEST_FORM:,} bytes; use the terminal for that")
    try:
        return tuple(
            parse_qsl(
                body.decode("utf-8"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=MOST_FIELDS
            )
        )
    except ValueError as error:
        # UnicodeDecodeError is a ValueError.
        raise ConfigurationError(f"this form cannot be read: {error}") from error


async def form_with_images(request: Request) -> tuple[Form, tuple[bytes, ...]]:
    """Read the fields and images of a form. Raises ConfigurationError as `form_of` does."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await form_of(request), ()
    size = number_in(request.headers.get("content-length", ""))
    if size is None or size > LARGEST_TOGETHER + LONGEST_FORM:
        raise ConfigurationError(f"the images are larger than {LARGEST_TOGETHER:,} bytes together; attach fewer")
    try:
        async with request.form(max_files=MOST_IMAGES, max_fields=50, max_part_size=LONGEST_FORM) as read:
            fields = read.multi_items()
            images = [await each.read() for _, each in fields if isinstance(each, UploadFile) and each.filename]
    except HTTPException as error:
        raise ConfigurationError(f"this form cannot be read: {error.detail}") from error
    return tuple((name, said) for name, said in fields if isinstance(said, str)), tuple(images)


def directory_of(request: Request) -> tuple[str, Path]:
    """Return the task id of the address, and its log or a copy of another machine's log. Raises NothingHere."""
    task_id, home = str(request.path_params["task"]), site_of(request).home
    directory = task_directory(home, task_id)
    if part_path(directory, 0).exists():
        return task_id, directory
    copy = copied(home, task_id)
    if copy is None:
        raise NothingHere(words_of(request)("There is nothing at this address."))
    return task_id, copy


def paths_of(form: Form) -> tuple[str, ...]:
    """Return the chosen paths: one path per field `path`, and one path per line of a field `paths`."""
    found = (said.splitlines() if name == "paths" else [said] for name, said in form if name in ("path", "paths"))
    return tuple(path for paths in found for path in paths)


def value(form: Form, name: str) -> str:
    """Return a field of a form, or an empty text if the field is missing."""
    return dict(form).get(name, "")


def number_in(text: str) -> int | None:
    """Parse a number in digits. Returns None for any other text, and if there are too many digits for `int`."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS else None


async def failed(request: Request, error: Exception) -> Response:
    """Show an `ArtooError` or `OSError` as a page."""
    status = 404 if isinstance(error, NothingHere) else 500 if isinstance(error, OSError) else 400
    return page(
        request, "failed.html", status, said=str(error) or words_of(request)("There is nothing at this address.")
    )


class NothingHere(ArtooError):
    """An error for an address that has no page."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("artoo.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions: tuple[Any, ...] = (beside, named, led_to, short_path, why_left)
    environment.globals.update({each.__name__: each for each in functions})
    environment.filters["moment"] = _moment
    environment.filters["duration"] = duration
    environment.filters["number"] = _number
    environment.filters["two"] = _two
    environment.filters["signed"] = _signed
    return environment


def _shown(value: object) -> object:
    """Replace control characters in texts, so that a name or an answer cannot hide text or reverse a line."""
    return printable(value) if type(value) is str else value


def _moment(when: datetime | float | None) -> str:
    return "" if when is None else local_time(when)


def _number(value: float) -> str:
    return f"{value:,}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def short_path(path: str, project: str) -> str:
    """Return a path relative to the project, or else to the user's home as `~/…`."""
    for place, start in ((project, ""), (str(Path.home()), "~/")):
        if len(place) > 1 and path.startswith(f"{place.rstrip('/')}/"):
            return start + path[len(place.rstrip("/")) + 1 :]
    return path


def _signed(value: float) -> str:
    return f"{value:+.2f}"
