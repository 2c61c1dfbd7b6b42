"""`read_file` on Office documents, notebooks and PDFs: their text, made in the sandbox."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest
from gate_world import Person
from real_workspaces import real_workspace
from test_web_fetch import pdf
from tool_doubles import StillClock

from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.workspace.changes.path_class import Places

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
CELL = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
WORD = f"""<w:document {W}><w:body><w:p><w:r><w:t>Dear Ada,</w:t></w:r></w:p>
<w:tbl><w:tr>{CELL.format("Item")}{CELL.format("Price")}</w:tr></w:tbl></w:body></w:document>"""
BOOK = f'<workbook {S} {R}><sheets><sheet name="Costs" sheetId="1" r:id="rId1"/></sheets></workbook>'
LINKS = '<Relationships xmlns="x"><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>'
SHEET = f"""<worksheet {S}><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1"><v>42.5</v></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>tea</t></is></c></row></sheetData></worksheet>"""
STRINGS = f"<sst {S}><si><t>coffee</t></si></sst>"
SLIDE = '<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>Growth is {}</a:t></a:r></a:p></p:sld>'
TEXT = '<o:d xmlns:o="o" xmlns:t="t"><t:h>Title</t:h><t:p>A <t:span>bold</t:span> word.</t:p></o:d>'
BOOKLET = {"cells": [{"cell_type": "code", "source": ["1+1"], "outputs": [{"data": {"text/plain": ["2"]}}]}]}


def archive(path: Path, parts: Mapping[str, str]) -> None:
    """Write a document of these parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(name, text)


@pytest.fixture
async def box(roots: Roots, places: Places) -> AsyncGenerator[SubTaskToolbox]:
    """The built-in tools over a real workspace, where nobody is asked anything."""
    async with real_workspace(roots) as workspace:
        gate = Gate(AskPerson(Person([])))
        tools = builtin_tools(Shared.of(workspace, gate, places))
        yield Registry(tools, StillClock(), gate=gate).toolbox("s", MustNot())


async def test_documents_are_read_as_text(box: SubTaskToolbox, roots: Roots) -> None:
    at = roots.project
    archive(at / "a.docx", {"word/document.xml": WORD})
    sheets = {"xl/workbook.xml": BOOK, "xl/_rels/workbook.xml.rels": LINKS, "xl/worksheets/sheet1.xml": SHEET}
    archive(at / "a.xlsx", {**sheets, "xl/sharedStrings.xml": STRINGS})
    archive(at / "a.pptx", {f"ppt/slides/slide{n}.xml": SLIDE.format(n) for n in (10, 2)})
    archive(at / "a.odt", {"content.xml": TEXT})
    (at / "a.ipynb").write_text(json.dumps(BOOKLET))
    (at / "a.pdf").write_bytes(pdf())
    kinds = ("docx", "xlsx", "pptx", "odt", "ipynb", "pdf")
    read = {kind: (await box.call("read_file", {"path": f"a.{kind}"})).output.rstrip() for kind in kinds}
    assert read["docx"].splitlines() == ["Dear Ada,", "Item | Price"]
    assert read["xlsx"].splitlines() == ["[sheet Costs]", "coffee\t\t42.5", "tea"]
    assert read["pptx"].splitlines() == ["[slide 1]", "Growth is 2", "", "[slide 2]", "Growth is 10"]
    assert read["odt"] == "Title\nA bold word."
    assert read["ipynb"] == "[code cell 1]\n1+1\n[output]\n2"
    assert read["pdf"] == "[page 1 of 1]\nForty-two"


async def test_a_long_document_says_how_to_read_on(box: SubTaskToolbox, roots: Roots) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 5_001))
    sheet = f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
    parts = {"xl/workbook.xml": BOOK, "xl/_rels/workbook.xml.rels": LINKS, "xl/worksheets/sheet1.xml": sheet}
    archive(roots.project / "long.xlsx", parts)
    first = await box.call("read_file", {"path": "long.xlsx"})
    assert "read on with offset" in first.output and len(first.output) <= 4_000
    last = await box.call("read_file", {"path": "long.xlsx", "offset": 4_990, "limit": 3})
    assert last.output.startswith("4989\n4990\n4991\n[lines 4990-4992 of 5001")


async def test_what_only_looks_like_a_document_is_an_error(box: SubTaskToolbox, roots: Roots) -> None:
    (roots.project / "a.docx").write_text("no archive")
    archive(roots.project / "bomb.docx", {"word/document.xml": " " * (200 << 20)})
    for name, said in (("a.docx", "no docx document"), ("bomb.docx", "unpacks to more than")):
        call = await box.call("read_file", {"path": name})
        assert call.status is CallStatus.ERROR and said in (call.reason or "")
