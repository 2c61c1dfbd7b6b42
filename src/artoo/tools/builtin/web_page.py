"""The sandboxed program behind `web_fetch`, with redirect, memory and request limits, and HTML as Markdown.

It runs in the task's sandbox, where a bug in a page parser can do no harm.

    python web_page.py URL ─► egress proxy ─► HTML as Markdown │ PDF as text │ other text as it is

The program imports nothing from artoo, because the sandbox may not contain artoo. It exits with 1 if the server
answers with an error.
"""

from __future__ import annotations

import io
import os
import resource
import sys
from urllib.parse import urljoin, urlsplit

MOST_MEMORY = 768 << 20
"""Limit of the process's data memory in bytes. It holds regardless of the size to which a page unpacks."""
REQUEST_SECONDS = 30
_MOST_REDIRECTS = 10
_TEXT = ("text/", "application/json", "application/xml", "application/javascript")


def main(url: str) -> int:
    """Fetch a page and print it; return the exit code."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    import primp

    proxy = os.environ.get("https_proxy")
    client = primp.Client(proxy=proxy, follow_redirects=False, timeout=REQUEST_SECONDS)
    for _ in range(_MOST_REDIRECTS):
        answer = client.get(url)
        target = answer.headers.get("location", "")
        if not (300 <= answer.status_code < 400 and target):
            break
        target = urljoin(url, target)
        if urlsplit(target).hostname != urlsplit(url).hostname:
            _say(f"{url} redirects to another host; fetch this address instead:\n{target}")
            return 0
        url = target
    else:
        _say(f"{url} redirects more than {_MOST_REDIRECTS} times")
        return 1
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = answer.content
    _say(f"{url} (HTTP {answer.status_code}, {kind or 'no content type'}, {len(body)} bytes)\n")
    if body.startswith(b"%PDF"):
        _say_pdf(body)
    elif kind in ("text/html", "application/xhtml+xml"):
        _say(answer.text_markdown)
    elif kind.startswith(_TEXT) or kind.endswith(("+json", "+xml")) or not body:
        _say(answer.text)
    else:
        _say("This is no text; to get the file, run a command that downloads it.")
    return 0 if answer.status_code < 400 else 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say_pdf(body: bytes) -> None:
    import pypdf

    pages = pypdf.PdfReader(io.BytesIO(body)).pages
    for number, page in enumerate(pages, 1):
        _say(f"[page {number} of {len(pages)}]\n{page.extract_text()}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
