"""Files that are not UTF-8 with LF: how they are written down stays, is told, and is no reason to show nothing."""

from __future__ import annotations

import codecs

import pytest
from tool_doubles import said

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.ports.sandbox import Roots
from artoo.tools.context.project_snapshot import ProjectLook
from artoo.tools.core.registry import SubTaskToolbox
from artoo.tools.files.text_files import exact_text
from artoo.workspace.changes.path_class import Places

GERMAN = "Grüße aus Köln\nzwei Häuser\nEnde\n"
RUSSIAN = "Привет, как дела\nпроверка файла\n"
MARK = codecs.BOM_UTF16_LE


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


async def edit(toolbox: SubTaskToolbox, old: str, new: str) -> ToolCall:
    return await toolbox.call("edit_file", {"path": "b.txt", "old": old, "new": new})


async def write(toolbox: SubTaskToolbox, content: str) -> ToolCall:
    return await toolbox.call("write_file", {"path": "b.txt", "content": content})


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (crlf(GERMAN).encode("cp1252"), "aus Köln\nzwei", "aus Düren\ndrei", ("Köln\r\nzwei", "Düren\r\ndrei")),
        (crlf(GERMAN).encode("cp1252"), "Ende", "Schluß\nEnde", ("Ende", "Schluß\r\nEnde")),
        (GERMAN.encode("cp1252"), "Häuser\r\nEnde", "Hüte\nEnde", ("Häuser", "Hüte")),
        (MARK + GERMAN.encode("utf-16-le"), "zwei Häuser", "drei Hüte", ("zwei Häuser", "drei Hüte")),
        (codecs.BOM_UTF8 + GERMAN.encode(), "Grüße", "Gruß", ("Grüße", "Gruß")),
        (RUSSIAN.encode("cp1251"), "проверка", "правка", ("проверка", "правка")),
        (RUSSIAN.encode("koi8-r"), "проверка", "правка", ("проверка", "правка")),
        ("中文文件，测试\n".encode("gb18030"), "测试", "编码", ("测试", "编码")),
    ],
)
async def test_an_edit_keeps_encoding_and_line_ends(
    toolbox: SubTaskToolbox, roots: Roots, before: bytes, old: str, new: str, after: tuple[str, str]
) -> None:
    """The text that is looked for and the text that is put there are both in the file's own bytes."""
    found = exact_text(before)
    assert found is not None
    (roots.project / "b.txt").write_bytes(before)
    call = await edit(toolbox, old, new)
    assert call.status is CallStatus.OK, said(call)
    assert (roots.project / "b.txt").read_bytes() == found.bytes_of(found.text.replace(*after))
    lines = call.output.splitlines()
    assert lines[2] == f"({found.form})" if found.form else lines[2].startswith("@@")
    assert any(line.startswith("+") and new.split("\n")[0].split()[-1] in line for line in lines[3:])


async def test_text_that_the_encoding_cannot_hold_is_no_edit(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """The error names the character and the encoding; the file is as it was."""
    before = crlf(GERMAN).encode("cp1252")
    (roots.project / "b.txt").write_bytes(before)
    call = await edit(toolbox, "Ende", "Конец")
    assert call.status is CallStatus.REFUSED
    assert "b.txt is not UTF-8, read as cp1252, line ends CRLF, which has no 'К'" in said(call)
    assert (roots.project / "b.txt").read_bytes() == before


async def test_bytes_that_are_no_text_stay_in_an_edit(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """One broken byte does not make a UTF-8 file another encoding; what is no text is taken byte for byte."""
    for rest in (b"\xff\n", b"\x00\x01\xff"):
        (roots.project / "b.txt").write_bytes("Grüße\n".encode() + rest)
        call = await edit(toolbox, "Grüße", "Häuser")
        assert call.status is CallStatus.OK, said(call)
        assert (roots.project / "b.txt").read_bytes() == "Häuser\n".encode() + rest


@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"", "cp1252"), (MARK, "utf-16-le"), (codecs.BOM_UTF8, "utf-8"), (b"", "utf-8")]
)
async def test_a_file_that_is_replaced_keeps_how_it_is_written(
    toolbox: SubTaskToolbox, roots: Roots, mark: bytes, encoding: str
) -> None:
    """Encoding, byte order mark and line ends, with a word on it: what a model saw was text without them."""
    (roots.project / "b.txt").write_bytes(mark + crlf(GERMAN).encode(encoding))
    call = await write(toolbox, GERMAN.replace("zwei", "drei"))
    assert (roots.project / "b.txt").read_bytes() == mark + crlf(GERMAN.replace("zwei", "drei")).encode(encoding)
    assert "as before: " in call.output
    assert "line ends CRLF" in call.output


async def test_who_is_shown_a_file_is_told_how_it_is_written(
    toolbox: SubTaskToolbox, roots: Roots, places: Places
) -> None:
    """In the listing and in what reading says; of an ordinary file, nothing."""
    (roots.project / "b.txt").write_bytes(crlf(GERMAN).encode("cp1252"))
    (roots.project / "c.txt").write_text(GERMAN)
    listing = (await ProjectLook(roots, places).look("compare b.txt with c.txt")).listing
    assert "All of b.txt (not UTF-8, read as cp1252, line ends CRLF):\nGrüße aus Köln\n" in listing
    assert "All of c.txt:\nGrüße" in listing
    whole = await toolbox.call("read_file", {"path": "b.txt"})
    some = await toolbox.call("read_file", {"path": "b.txt", "offset": 2, "limit": 2})
    assert (whole.ran, some.ran) == (
        "not UTF-8, read as cp1252, line ends CRLF",
        "lines 2 to 3, not UTF-8, read as cp1252, line ends CRLF",
    )
    assert (await toolbox.call("read_file", {"path": "c.txt"})).ran is None
