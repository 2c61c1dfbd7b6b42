"""`artoo doctor`: each finding is true, and says what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from click.testing import CliRunner

from artoo.cli.commands import doctor_command
from artoo.cli.commands.doctor_command import doctor, examine
from artoo.cli.doctor import checks as diagnosis
from artoo.cli.doctor.checks import Diagnosis, State
from artoo.cli.doctor.models import embedded, models
from artoo.cli.doctor.sandbox import findings_of
from artoo.llm import guard
from artoo.llm.embedded.store import ModelStore
from artoo.runtime.config.model import Config
from artoo.sandbox.backends.diagnostics import BackendDiagnosis, apparmor_remedy


@asynccontextmanager
async def server(status: int, body: object, page: Handler | None = None) -> AsyncGenerator[str]:
    """A model server that answers GET /models, with `page` if that is given; its base URL."""

    async def listing(_: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    application = web.Application()
    application.router.add_get("/v1/models", page or listing)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    guard.admit(base_url)
    try:
        yield base_url
    finally:
        guard.retract(base_url)
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "body", "state"),
    [
        (200, {"data": [{"id": "wanted"}]}, State.OK),
        (200, {"data": [{"id": "other"}]}, State.WARN),
        (200, {"models": []}, State.OK),
        (401, {}, State.FAIL),
        (404, {}, State.WARN),
    ],
)
async def test_endpoints_are_asked(status: int, body: object, state: State) -> None:
    """A server is reachable, or lacks the model, or refuses the key: each is its own finding."""
    async with server(status, body) as base_url:
        found, to_fetch = await models(Config(), {"OPENAI_BASE_URL": base_url, "OPENAI_MODEL": "wanted"})
    assert [finding.state for finding in found] == [state, state]
    assert to_fetch == 0


async def test_a_server_that_answers_with_a_web_page_fails() -> None:
    """A wrong path often shows HTML with status 200: that is no model server."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    async with server(200, None, page) as base_url:
        found, _ = await models(Config(), {"OPENAI_BASE_URL": base_url, "OPENAI_MODEL": "wanted"})
    assert {finding.state for finding in found} == {State.FAIL}
    assert "answers with text/html" in found[0].detail and "/v1" in (found[0].remedy or "")


async def test_an_endpoint_that_is_not_there_fails() -> None:
    """A server that cannot be reached is a failure with a remedy; the other tier is judged by itself."""
    guard.admit("http://127.0.0.1:1")
    async with server(200, {"data": [{"id": "m"}]}) as base_url:
        environ = {
            "BRAIN_BASE_URL": base_url,
            "BRAIN_MODEL": "m",
            "TOOL_BASE_URL": "http://127.0.0.1:1",
            "TOOL_MODEL": "m",
        }
        found, _ = await models(Config(), environ)
    guard.retract("http://127.0.0.1:1")
    assert [(finding.name, finding.state) for finding in found] == [
        ("model brain", State.OK),
        ("model tool", State.FAIL),
    ]
    assert found[1].remedy


async def test_a_proxy_that_cannot_be_used_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one finding among the others, and does not end the examination."""
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    found, _ = await models(Config(), {"OPENAI_BASE_URL": "https://model.example/v1", "OPENAI_MODEL": "m"})
    assert {finding.state for finding in found} == {State.FAIL} and "NO_PROXY" in found[0].detail


def test_the_embedded_model_is_described(tmp_path: Path) -> None:
    """Absent, present but damaged, a file of one's own, a file that is no model: all told apart."""
    config = Config().at_home(tmp_path)
    found, to_fetch = embedded(config)
    known = ModelStore(tmp_path).known[0]
    assert (found.state, to_fetch) == (State.WARN, known.size)
    file = ModelStore(tmp_path).path_of(known)
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert embedded(config)[0].state is State.FAIL
    own = tmp_path / "own.gguf"
    own.write_bytes(b"not a model")
    chosen = Config.model_validate({"embedded": {"model": str(own)}}).at_home(tmp_path)
    assert embedded(chosen)[0].state is State.FAIL
    own.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(64))
    assert embedded(chosen)[0].state is State.OK


def test_the_home_is_judged(tmp_path: Path) -> None:
    """A home that is a file fails, an open one is a warning, one that does not exist yet is fine."""
    assert diagnosis.home(tmp_path / "new" / "home").state is State.OK
    (tmp_path / "file").touch()
    assert diagnosis.home(tmp_path / "file").state is State.FAIL
    assert diagnosis.home(tmp_path / "file" / "home").state is State.FAIL
    tmp_path.chmod(0o755)
    assert diagnosis.home(tmp_path).state is State.WARN
    tmp_path.chmod(0o700)
    assert diagnosis.home(tmp_path) == Diagnosis("home", State.OK, str(tmp_path))


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room for a model that must still be fetched is a failure that says how much is needed."""

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1_000_000_000)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert diagnosis.disk(tmp_path / "new", 0).state is State.OK
    found = diagnosis.disk(tmp_path / "new", 1_117_320_768)
    assert found.state is State.FAIL
    assert "2.4 GB" in found.remedy


def test_the_backend_in_use_is_shown() -> None:
    """With the cause and remedy of every better one that does not work."""
    better = BackendDiagnosis("bubblewrap", False, "user namespaces are off", "switch them on:\nsysctl …")
    found = findings_of([better, BackendDiagnosis("landlock", True), BackendDiagnosis("none", True)])
    assert found[0] == Diagnosis(
        "bubblewrap", State.WARN, "does not work here: user namespaces are off", better.remedy
    )
    assert (found[1].name, found[1].state, len(found)) == ("sandbox", State.OK, 2)
    assert found[1].detail.startswith("landlock: commands work in a copy")
    assert findings_of([BackendDiagnosis("none", True)])[0].state is State.WARN


def test_a_broken_configuration_does_not_end_the_examination(home: Path) -> None:
    """What depends on the configuration is left out, the rest is still examined."""
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("zzz: 1\n")
    found = {finding.name: finding for finding in asyncio.run(examine(os.environ))}
    assert found["config"].state is State.FAIL
    assert f"{home}/config.yaml:1:1" in found["config"].detail
    assert "disk" in found
    assert "workspace" not in found


def report(*findings: Diagnosis) -> object:
    """An examination with these findings."""

    async def examined(_: object) -> list[Diagnosis]:
        return list(findings)

    return examined


def test_the_exit_code_tells_whether_something_must_be_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures end with 1, warnings with 0; remedies stand under what they mend."""
    warning = Diagnosis("disk", State.WARN, "little room " * 10, "make room")
    monkeypatch.setattr(doctor_command, "examine", report(warning))
    ended = CliRunner().invoke(doctor, [])
    assert ended.exit_code == 0
    assert "> make room" in ended.output
    assert max(len(line) for line in ended.output.splitlines()) <= 80
    monkeypatch.setattr(doctor_command, "examine", report(warning, Diagnosis("home", State.FAIL, "no")))
    ended = CliRunner().invoke(doctor, ["--json"])
    assert ended.exit_code == 1
    assert [entry["state"] for entry in json.loads(ended.output)] == ["warn", "fail"]


def test_commands_of_a_remedy_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are neither wrapped nor indented: what follows `sudo tee` is the file as it must be."""
    remedy = apparmor_remedy(Path("/home/somebody/with/a/long/path/to/a/virtual/environment/bin/bwrap"))
    monkeypatch.setattr(doctor_command, "examine", report(Diagnosis("bubblewrap", State.WARN, "no", remedy)))
    shown = CliRunner().invoke(doctor, []).output
    assert remedy.partition("\n")[2] in shown and "> allow user namespaces to this bubblewrap" in shown
