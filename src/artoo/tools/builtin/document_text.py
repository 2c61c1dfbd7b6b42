"""A sandboxed program that prints Office, OpenDocument, notebook or PDF files as text, with a memory limit.

The program runs in the task's sandbox, where a bug in a document parser can do no harm.

    python document_text.py FILE FIRST_LINE LINES CHARACTERS ─► Office │ OpenDocument │ notebook │ PDF as text

The program imports nothing from artoo, because the sandbox may not contain artoo. If it cannot parse the file, it
prints a reason and exits with 1.
"""

from __future__ import annotations

import json
import pathlib
import re
import resource
import sys
import zipfile
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

MOST_MEMORY = 768 << 20
"""Limit of the process's data memory in bytes. It holds regardless of the size to which a document unpacks."""
LARGEST_PART = 128 << 20
_MOST_ROWS = 100_000
_BLOCKS = {
    "p": "\n",
    "tr": "\n",
    "br": "\n",
    "tab": "\t",
    "tc": " | ",
    "table-row": "\n",
    "table-cell": " | ",
    "h": "\n",
}


def main(path: str, first: int, most: int, room: int) -> int:
    """Print a document's text from line `first` on, at most `most` lines and `room` characters. Return the exit
    code."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    kind = path.rpartition(".")[2].lower()
    try:
        lines = "\n".join(_READERS[kind](path)).rstrip("\n").split("\n")
        last = first - 1
        for line in lines[first - 1 : first - 1 + most]:
            room -= len(line) + 1
            if room < 0 and last >= first:
                break
            sys.stdout.write(f"{line}\n")
            last += 1
        if last < len(lines):
            sys.stdout.write(f"[lines {first}-{last} of {len(lines)}; read on with offset {last + 1}]\n")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, ElementTree.ParseError, MemoryError) as error:
        sys.stderr.write(f"it is no {kind} document that can be read: {error}\n")
        return 1
    return 0


def _notebook(path: str) -> Iterator[str]:
    with pathlib.Path(path).open(encoding="utf-8") as stream:
        book: dict[str, Any] = json.load(stream)
    for number, cell in enumerate(book["cells"], 1):
        yield f"[{cell['cell_type']} cell {number}]"
        yield "".join(cell.get("source", ""))
        for output in cell.get("outputs", ()):
            text = output.get("text") or output.get("data", {}).get("text/plain") or output.get("traceback") or ""
            yield f"[output]\n{''.join(text)}".rstrip()
        yield ""


def _word(path: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        yield _flat(_tree(archive, "word/document.xml"))


def _slides(path: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"ppt/slides/slide\d+\.xml", name)]
        for number, name in enumerate(sorted(names, key=lambda one: int(re.sub(r"\D", "", one))), 1):
            yield f"[slide {number}]\n{_flat(_tree(archive, name))}\n"


def _open_document(path: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        yield _flat(_tree(archive, "content.xml"))


def _sheets(path: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        there = set(archive.namelist())
        shared = _tree(archive, "xl/sharedStrings.xml") if "xl/sharedStrings.xml" in there else ()
        strings = ["".join(_texts(item)) for item in shared]
        targets = {one.get("Id"): one.get("Target", "") for one in _tree(archive, "xl/_rels/workbook.xml.rels")}
        for sheet in _tree(archive, "xl/workbook.xml").iter():
            if _name(sheet) != "sheet":
                continue
            link = next(value for key, value in sheet.attrib.items() if key.endswith("}id"))
            target = (targets[link] or "").lstrip("/")
            yield f"[sheet {sheet.get('name')}]"
            yield from _rows(_tree(archive, target if target.startswith("xl/") else f"xl/{target}"), strings)
            yield ""


def _rows(sheet: ElementTree.Element, strings: list[str]) -> Iterator[str]:
    """Yield the rows of a sheet. Tabs separate the cells, and empty cells are included."""
    rows = (each for each in sheet.iter() if _name(each) == "row")
    for number, row in enumerate(rows):
        if number == _MOST_ROWS:
            yield f"[more than {_MOST_ROWS} rows]"
            return
        cells: dict[int, str] = {}
        for cell in row:
            value = next((each.text or "" for each in cell if _name(each) == "v"), "")
            if cell.get("t") == "s" and value:
                value = strings[int(value)]
            elif cell.get("t") == "inlineStr":
                value = "".join(_texts(cell))
            cells[_column(cell.get("r", ""), len(cells))] = value.replace("\t", " ").replace("\n", " ")
        yield "\t".join(cells.get(place, "") for place in range(max(cells, default=-1) + 1)).rstrip("\t")


def _column(reference: str, otherwise: int) -> int:
    """Return the column number of a cell reference such as `AB12`, from 0."""
    letters = re.match(r"[A-Z]{1,3}", reference)
    if letters is None:
        return otherwise
    number = 0
    for letter in letters.group():
        number = number * 26 + ord(letter) - 64
    return number - 1


def _pdf(path: str) -> Iterator[str]:
    import pypdf

    pages = pypdf.PdfReader(path).pages
    for number, page in enumerate(pages, 1):
        yield f"[page {number} of {len(pages)}]\n{page.extract_text()}\n"


def _tree(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """Parse a part of an archive. Raises ValueError if it unpacks to more than `LARGEST_PART` bytes."""
    with archive.open(name) as stream:
        data = stream.read(LARGEST_PART + 1)
    if len(data) > LARGEST_PART:
        raise ValueError(f"{name} unpacks to more than {LARGEST_PART >> 20} MiB")
    return ElementTree.fromstring(data)


def _flat(tree: ElementTree.Element) -> str:
    """Return the text of an XML tree, with separators after its blocks."""
    pieces: list[str] = []

    def walk(node: ElementTree.Element) -> None:
        name = _name(node)
        if name in ("t", "span", "p", "h", "a") and node.text:
            pieces.append(node.text)
        for child in node:
            walk(child)
            if child.tail and child.tail.strip():
                pieces.append(child.tail)
        pieces.append(_BLOCKS.get(name, ""))

    walk(tree)
    lines = (
        line.rstrip().removesuffix(" |").strip(" ") for line in "".join(pieces).replace("\n | ", " | ").split("\n")
    )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _texts(node: ElementTree.Element) -> Iterator[str]:
    return (each.text or "" for each in node.iter() if _name(each) == "t")


def _name(node: ElementTree.Element) -> str:
    """Return a tag without its namespace."""
    return node.tag.rpartition("}")[2]


_READERS = {"ipynb": _notebook, "docx": _word, "xlsx": _sheets, "pptx": _slides, "pdf": _pdf} | dict.fromkeys(
    ("odt", "ods", "odp"), _open_document
)


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
