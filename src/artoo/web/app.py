"""The table of web UI addresses and static files, and the login with a token.

The guard checks every request.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from artoo.contracts.errors import ArtooError
from artoo.web import asking, books, differences, tasks, team
from artoo.web.entry import SESSION_SECONDS, Entry
from artoo.web.guard import COOKIE, ENTRANCE, NO_COOKIE, Guard
from artoo.web.site import LANGUAGE, Site, failed, form_of, page, value, words_of

STATIC = {
    "composer.js": "text/javascript",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "plots.js": "text/javascript",
    "regions.js": "text/javascript",
    "streams.js": "text/javascript",
    "timeline.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
}
"""The static files, by name. Other names are refused, so no request can name a path."""

ENTERED = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    '<title>artoo</title><p><a href="/">artoo</a>'
)
"""A page, not a redirect, because browsers send a SameSite=Strict cookie only if the page itself navigates."""


async def enter(request: Request) -> Response:
    """Exchange a token for a cookie. Each token can be used once."""
    entry: Entry = request.app.state.entry
    session = entry.enter(request.query_params.get("token", ""))
    if session is None:
        return PlainTextResponse(NO_COOKIE, 401)
    response = HTMLResponse(ENTERED)
    response.set_cookie(COOKIE, session, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict", path="/")
    return response


async def language(request: Request) -> Response:
    """Store the chosen language in a cookie, and redirect to the page of the form."""
    form = await form_of(request)
    chosen, back = value(form, "language"), value(form, "back")
    own = back.startswith("/") and not back.startswith(("//", "/\\"))
    response = RedirectResponse(back if own else "/", 303)
    if chosen in ("en", "zh"):
        response.set_cookie(LANGUAGE, chosen, max_age=int(SESSION_SECONDS), samesite="strict", path="/")
    return response


async def static(request: Request) -> Response:
    """Serve one static file.

    Browsers cache the file but revalidate it each time, because a file of another version would not fit the page.
    """
    name = str(request.path_params["name"])
    if name not in STATIC:
        return PlainTextResponse("artoo: no such file\n", 404)
    content, tag = _file(name)
    headers = {"cache-control": "private, no-cache", "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=STATIC[name], headers=headers)


@lru_cache(maxsize=len(STATIC))
def _file(name: str) -> tuple[bytes, str]:
    """Return a static file's content and its ETag."""
    content = files("artoo.web").joinpath("static", name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


ROUTES = (
    Route(ENTRANCE, enter),
    Route("/", tasks.home),
    Route("/events", tasks.home_stream),
    Route("/tasks", asking.start, methods=["POST"]),
    Route("/tasks/{task}", tasks.task),
    Route("/tasks/{task}/how", tasks.how),
    Route("/tasks/{task}/images/{digest}", tasks.image),
    Route("/tasks/{task}/resume", asking.resume, methods=["POST"]),
    Route("/tasks/{task}/rows", tasks.rows),
    Route("/tasks/{task}/stream", tasks.stream),
    Route("/tasks/{task}/events/{number}", tasks.event),
    Route("/tasks/{task}/stop", asking.stop, methods=["POST"]),
    Route("/tasks/{task}/say", asking.say, methods=["POST"]),
    Route("/tasks/{task}/answer", asking.answer, methods=["POST"]),
    Route("/tasks/{task}/difference", differences.difference),
    Route("/tasks/{task}/apply", differences.apply, methods=["POST"]),
    Route("/tasks/{task}/discard", differences.discard, methods=["POST"]),
    Route("/tasks/{task}/undo", differences.undo, methods=["POST"]),
    Route("/tasks/{task}/what-if", differences.what_if),
    Route("/team", team.team),
    Route("/team/tasks", team.add_task, methods=["POST"]),
    Route("/team/tasks/{task}", team.board_task),
    Route("/team/tasks/{task}/review", team.review, methods=["POST"]),
    Route("/team/tasks/{task}/move", team.move, methods=["POST"]),
    Route("/team/letters", team.send_letter, methods=["POST"]),
    Route("/team/letters/{letter}/read", team.letter_read, methods=["POST"]),
    Route("/memory", books.memory),
    Route("/memory/proposals/{proposal}", books.propose, methods=["POST"]),
    Route("/audit", books.audit),
    Route("/audit/verify", books.verify, methods=["POST"]),
    Route("/language", language, methods=["POST"]),
    Route("/static/{name}", static),
)


async def not_found(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown address with status 404."""
    return page(request, "failed.html", 404, said=words_of(request)("There is nothing at this address."))


def application(site: Site, entry: Entry) -> Starlette:
    """Build the web UI of one home as an ASGI application."""
    app = Starlette(
        routes=list(ROUTES),
        middleware=[Middleware(Guard, entry=entry)],
        exception_handlers={ArtooError: failed, OSError: failed, 404: not_found},
    )
    app.state.site, app.state.entry = site, entry
    return app
