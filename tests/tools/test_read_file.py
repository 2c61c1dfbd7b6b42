"""Reading files that others named."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_doubles import MakeToolbox, said

from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, ToolCall
from artoo.ports.sandbox import Roots
from artoo.tools.builtin.read_file import ReadFile
from artoo.tools.core.registry import SubTaskToolbox
from artoo.tools.files.text_files import decode
from artoo.workspace.changes.path_class import Places


async def read(toolbox: SubTaskToolbox, path: str, **more: int | str) -> ToolCall:
    return await toolbox.call("read_file", {"path": path, **more})


async def test_a_text_file_is_shown_whole(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """The output is the file's text; the target is its path in the project, however it was written."""
    (roots.project / "data").mkdir()
    (roots.project / "data" / "a.txt").write_text("one\ntwo\n")
    for path in (
        "data/a.txt",
        "./data//a.txt",
        str(roots.project / "data" / "a.txt"),
        "~/project/data/../data/a.txt",
    ):
        call = await read(toolbox, path)
        assert (call.status, call.output, call.target, call.total_bytes) == (
            CallStatus.OK,
            "one\ntwo\n",
            "data/a.txt",
            8,
        )


async def test_a_huge_file_is_bounded(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """A sparse gigabyte costs no more than what is shown of it; its size is told."""
    with (roots.project / "huge.log").open("wb") as file:
        file.write(b"first line\n" + b"x\n" * 200_000)
        file.seek(1 << 30)
        file.write(b"last line\n")
    call = await read(toolbox, "huge.log")
    assert call.status is CallStatus.OK, said(call)
    assert call.truncated
    assert len(call.output) <= OUTPUT_KEPT
    assert call.output.startswith("first line")
    assert f"of {(1 << 30) + 10} bytes; read on with offset" in call.output


async def test_a_longer_file_says_how_to_read_on(make_toolbox: MakeToolbox, roots: Roots, places: Places) -> None:
    """The first lines are shown with how to read on; where there is room a call shows more."""
    lines = [f"line {number:04}\n" for number in range(1, 1_001)]
    (roots.project / "n.txt").write_text("".join(lines))
    box = make_toolbox()
    call = await read(box, "n.txt")
    assert call.output == "".join((*lines[:384], "[lines 1-384 of 1000; read on with offset 385]\n"))
    assert call.truncated
    call = await read(box, "n.txt", offset=385)
    assert call.output == "".join((*lines[384:768], "[lines 385-768 of 1000; read on with offset 769]\n"))
    more = ReadFile(roots, places, kept=40_000)
    seen = await more.run({"path": "n.txt"})
    assert (seen.output, seen.truncated) == ("".join(lines), False)
    (roots.project / "n.txt").write_text("x\n" * 2_500)
    assert (await more.run({"path": "n.txt"})).output.endswith("[lines 1-2000 of 2500; read on with offset 2001]\n")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeffname,数".encode(), "name,数"),
        ("数据分析报告".encode("gb18030"), "数据分析报告"),
        ("Größe über café".encode("cp1252"), "Größe über café"),
        ("hello\n".encode("utf-16"), "hello\n"),
        (b"caf\xe9", "café"),
        (b"", ""),
    ],
)
async def test_whatever_the_encoding(toolbox: SubTaskToolbox, roots: Roots, data: bytes, text: str) -> None:
    """UTF-8 and UTF-16 with and without marks, Chinese and Western encodings are read."""
    (roots.project / "t.txt").write_bytes(data)
    assert (await read(toolbox, "t.txt")).output == text


@given(st.binary(max_size=300))
def test_decoding_never_fails(data: bytes) -> None:
    """Any bytes are text or not text."""
    for whole in (True, False):
        found = decode(data, whole=whole)
        assert found is None or found.text.encode("utf-8", "surrogatepass") is not None


async def test_a_wrong_path_says_where_the_thing_is(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """The same name elsewhere, copies, and nearly the same names are told."""
    (roots.project / "reports").mkdir()
    (roots.project / "reports" / "summary.md").write_text("x")
    (roots.project / "invoices_2021.csv").write_text("x")
    (roots.project / "invoices_2022.csv").write_text("x")
    assert "there is no summary.md; nearest: reports/summary.md" in said(await read(toolbox, "summary.md"))
    similar = said(await read(toolbox, "invoices_2019.csv"))
    assert "there is no invoices_2019.csv; nearest: invoices_202" in similar
    assert "invoices_2021.csv" in similar and "invoices_2022.csv" in similar
    assert "nothing with a similar name" in said(await read(toolbox, "zzzz.qqq"))
    assert said(await read(toolbox, "/nowhere/at/all.txt")) == "there is no /nowhere/at/all.txt"


async def test_what_is_no_file_is_named(
    toolbox: SubTaskToolbox, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories, pipes, sockets, devices and binary files are neither waited for nor shown."""
    project = roots.project
    (project / "d").mkdir()
    (project / "d" / "x.txt").write_text("x")
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        (project / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
        (project / "noise").write_bytes(bytes(range(256)) * 20)
        for path, says in (
            ("d", "d is a directory; in it: x.txt"),
            ("pipe", "it is a pipe, not a file"),
            ("sock", "not a file"),
            ("p.png", "it is a PNG image, not text"),
            ("noise", "it is binary data, not text"),
            ("d/x.txt/y", "d/x.txt/y"),
            ("a\0b", "is not a path"),
            ("x" * 5_000, "there is no x"),
        ):
            call = await read(toolbox, path)
            assert call.status is CallStatus.ERROR, path
            assert says in said(call), path


@pytest.mark.parametrize(
    "path", ["~/.ssh/id_rsa", "~/.aws/credentials", "~/.artoo/config.yaml", "/proc/self/environ"]
)
async def test_secrets_are_refused_also_through_links(toolbox: SubTaskToolbox, roots: Roots, path: str) -> None:
    """Credentials, artoo's own files and the kernel's view of processes are out of reach under any name."""
    real = roots.home / path.removeprefix("~/")
    if path.startswith("~"):
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text("secret")
    link = roots.project / "innocent.txt"
    link.symlink_to(real)
    for name in (path, "innocent.txt"):
        call = await read(toolbox, name)
        assert call.status is CallStatus.REFUSED
        assert "secret" not in call.output
