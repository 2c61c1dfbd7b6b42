"""`web_fetch`: pages as Markdown, PDFs as text, through the egress proxy and only with approval."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncGenerator, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from gate_world import Person
from real_workspaces import real_workspace
from tool_doubles import StillClock, said

from artoo.contracts.confirmation import Consent
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Workspace
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.workspace.changes.path_class import Places

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")

PAGE = "<html><head><script>x()</script></head><body><h1>News</h1><p>All <b>well</b>.</p></body></html>"
OBJECTS = (
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
    b"<</Length 40>>stream\nBT /F 12 Tf 10 100 Td (Forty-two) Tj ET \nendstream",
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
)


def pdf() -> bytes:
    """A document of one page."""
    body, places = b"%PDF-1.4\n", list[int]()
    for number, text in enumerate(OBJECTS, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 6\n0000000000 65535 f \n"
    return body + head + table + b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF\n" % len(body)


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answers = {
            "/page": (200, "text/html; charset=utf-8", PAGE.encode()),
            "/data": (200, "application/json", b'{"answer": 42}'),
            "/paper": (200, "application/pdf", pdf()),
            "/picture": (200, "image/png", b"\x89PNG\0"),
            "/long": (200, "text/plain", b"word\n" * 20_000),
            "/there": (302, "text/plain", b""),
            "/away": (302, "text/plain", b""),
        }
        status, kind, body = answers.get(self.path, (404, "text/plain", b"nothing here"))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/page" if self.path == "/there" else "http://other.test/page")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it
        """Say nothing."""


@pytest.fixture
def site() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
async def real(roots: Roots) -> AsyncGenerator[Workspace]:
    async with real_workspace(roots) as workspace:
        yield workspace


def box_of(real: Workspace, places: Places, person: Person) -> SubTaskToolbox:
    gate = Gate(AskPerson(person))
    return Registry(builtin_tools(Shared.of(real, gate, places)), StillClock(), gate=gate).toolbox("s", MustNot())


async def test_pages_become_text(real: Workspace, places: Places, site: str) -> None:
    """HTML is Markdown, a PDF its text, JSON stays; other content is named; a host's redirects are followed."""
    person = Person([Consent.ONCE] * 9)
    box = box_of(real, places, person)
    for path, says in (
        ("/page", "# News\n\nAll **well**."),
        ("/data", '{"answer": 42}'),
        ("/paper", "[page 1 of 1]\nForty-two"),
        ("/picture", "This is no text"),
        ("/there", "# News"),
        ("/away", "redirects to another host; fetch this address instead:\nhttp://other.test/page"),
    ):
        call = await box.call("web_fetch", {"url": f"{site}{path}"})
        assert call.status is CallStatus.OK, said(call)
        assert says in call.output, said(call)
        assert call.changes == ()
    assert person.asked[0].title == f"web_fetch: network {site.removeprefix('http://')}"
    assert f"$ fetch {site}/page" in person.asked[0].details


async def test_an_error_of_the_server_is_one_of_the_call(real: Workspace, places: Places, site: str) -> None:
    """The status and the server's words are in the record."""
    box = box_of(real, places, Person([Consent.ONCE] * 2))
    call = await box.call("web_fetch", {"url": f"{site}/nowhere"})
    assert call.status is CallStatus.ERROR
    assert "HTTP 404" in call.output and "nothing here" in call.output


async def test_without_approval_nothing_is_fetched(real: Workspace, places: Places, site: str) -> None:
    """A no is a refusal; what is no address of the web is an error, unasked."""
    person = Person([Consent.NO])
    box = box_of(real, places, person)
    refused = await box.call("web_fetch", {"url": f"{site}/page"})
    assert (refused.status, refused.withheld_by, refused.output) == (CallStatus.REFUSED, "person", "")
    for url in ("file:///etc/passwd", "ftp://example.org/x", "example.org", "http://[::1", "https://"):
        call = await box.call("web_fetch", {"url": url})
        assert call.status is CallStatus.ERROR, url
        assert "address" in said(call)
    assert len(person.asked) == 1
