"""What a small model is told about the files around a request."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.ports.sandbox import Roots
from artoo.tools.context.project_listing import LISTING_CHARACTERS, Head, Snapshot, describe, named_in
from artoo.tools.context.project_snapshot import ProjectLook
from artoo.tools.files.walk import EntryKind, WalkEntry
from artoo.workspace.changes.path_class import Places


def files(*paths: str) -> tuple[WalkEntry, ...]:
    return tuple(WalkEntry(path, EntryKind.FILE, 10) for path in paths)


@pytest.fixture
def source(roots: Roots, places: Places) -> ProjectLook:
    return ProjectLook(roots, places)


@pytest.mark.parametrize(
    ("request_text", "named"),
    [
        ("In people.csv, what is the average age?", ["people.csv"]),
        ("Soma os valores de data/sales.csv e depois people.csv.", ["data/sales.csv", "people.csv"]),
        ("统计people.csv中的平均年龄，保存到result.txt。", ["people.csv"]),
        ("Compare `my file.txt` with ./people.csv", ["my file.txt", "people.csv"]),
        ("What does sales.csv hold?", ["data/sales.csv", "old/sales.csv"]),
        ("Use people.csv.bak or old_people.csv", []),
        ("Create index.html", []),
        (r'File "C:\Users\E\shop\data\sales.csv", line 3', ["data/sales.csv"]),
        ("/usr/lib/site-packages/old/sales.csv:7: error", ["old/sales.csv"]),
        ("/usr/lib/site-packages/sales.csv:7: error", []),
    ],
)
def test_what_is_named_is_a_path_on_disk_that_stands_in_the_request(request_text: str, named: list[str]) -> None:
    """Exact tokens alone, in any language; nothing is read out of the words around them."""
    entries = files("people.csv", "data/sales.csv", "old/sales.csv", "my file.txt", "dex.html")
    assert list(named_in(Snapshot(entries), request_text)) == named


@pytest.mark.parametrize(
    ("request_text", "named"),
    [
        ("How many files are in src?", ["src"]),
        ("What is in files?", ["src/app/files"]),
        ("Which files of src/app import b.py?", ["src/app", "src/b.py"]),
        ("Do not change the tests.", []),
    ],
)
def test_a_directory_deep_down_is_not_named_by_a_word_beside_a_whole_path(
    request_text: str, named: list[str]
) -> None:
    """Where the request names a path whole, its other words may be just words."""
    directories = (
        WalkEntry(path, EntryKind.DIRECTORY)
        for path in ("src", "src/app", "src/app/files", "src/tests", "src/app/tests")
    )
    assert list(named_in(Snapshot((*directories, *files("src/b.py"))), request_text)) == named


_NAME = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=30).filter(
    lambda name: name not in (".", "..")
)


@given(st.lists(st.tuples(_NAME, st.sampled_from(list(EntryKind))), max_size=80), st.text(max_size=200))
def test_the_listing_stays_within_its_budget(named: list[tuple[str, EntryKind]], request_text: str) -> None:
    """Whatever the names and the request, the listing is bounded and can be stored as UTF-8."""
    entries = tuple(WalkEntry(name, kind, 5, "target") for name, kind in named)
    heads = {entry.path: Head(lines=("x" * 500, "y")) for entry in entries}
    request = request_text + " " + " ".join(name + ".csv" for name, _ in named[:10])
    listing = describe(Snapshot(entries, heads=heads), request).listing
    assert len(listing) <= 2 * LISTING_CHARACTERS
    listing.encode()


async def test_heads_of_named_files_are_shown(source: ProjectLook, roots: Roots) -> None:
    """Cut lines, no control characters; empty and binary files are described."""
    (roots.project / "p.csv").write_text("name,age\nAna,34\n\x1b[31mBo\x1b[0m,22\nCy,50\n")
    (roots.project / "long.txt").write_text("w" * 5_000)
    (roots.project / "e.txt").write_text("")
    (roots.project / "i.png").write_bytes(b"\x89PNG\0\0")
    listing = (await source.look("Look at p.csv, long.txt, e.txt and i.png")).listing
    assert "First lines of p.csv (columns: name, age):\nname,age\nAna,34\n [31mBo [0m,22" in listing
    assert "Cy" not in listing
    assert "w" * 120 + "..." in listing
    assert "e.txt: is empty" in listing
    assert "i.png: is a PNG image, not text" in listing


@pytest.mark.parametrize(
    ("request_text", "alone"),
    [
        ("sum data/sales.csv", True),
        ("sum data/sales.csv and data/broken.csv", False),
        ("sum data/sales.csv and march.csv", False),
        ("sum data/sales.csv in data", False),
        ("sum what is here", False),
    ],
)
async def test_named_files_speak_for_themselves_when_all_can_be_read(
    source: ProjectLook, roots: Roots, request_text: str, alone: bool
) -> None:
    """A broken link, a file that is nowhere or a directory among what is named needs the tree, as no name does."""
    (roots.project / "data").mkdir()
    (roots.project / "data/sales.csv").write_text("id,amount\n1,20\n")
    (roots.project / "data/broken.csv").symlink_to("gone.csv")
    seen = await source.look(request_text)
    assert seen.named == ("All of data/sales.csv (columns: id, amount):\nid,amount\n1,20" if alone else "")
    assert seen.listing.endswith(seen.named)


async def test_small_files_are_shown_whole_to_a_capable_model(source: ProjectLook, roots: Roots) -> None:
    """Where whole files are wanted, up to some lines; of a larger one the first."""
    (roots.project / "p.csv").write_text("name,age\nAna,34\nBo,22\nCy,50\n")
    (roots.project / "q.csv").write_text("name,age\n" + "Ana,34\n" * 300)
    listing = (await replace(source, whole_files=True).look("Look at p.csv and q.csv")).listing
    assert "All of p.csv (columns: name, age):\nname,age\nAna,34\nBo,22\nCy,50" in listing
    assert "First lines of q.csv (columns: name, age):\nname,age\nAna,34\nAna,34" in listing
    assert listing.count("Ana") == 3


async def test_two_files_of_a_named_directory_are_shown(source: ProjectLook, roots: Roots) -> None:
    (roots.project / "regions").mkdir()
    for name in ("north", "south", "west"):
        (roots.project / "regions" / f"{name}.csv").write_text(f"units\n{len(name)}\n")
    listing = (await source.look("Sum the units of each file in regions")).listing
    assert "All of regions/north.csv:\nunits\n5" in listing
    assert listing.count("All of regions/") == 2
    (roots.project / "regions" / "archive").mkdir()  # the first files of a tree say little about the rest
    assert "All of regions/" not in (await source.look("Sum the units of each file in regions")).listing


async def test_broken_links_copies_and_ignored_files(source: ProjectLook, roots: Roots) -> None:
    """A link that leads nowhere is said to, with what is nearest; that ignored files are left out is said."""
    project = roots.project
    (project / "data" / "archive").mkdir(parents=True)
    (project / "data" / "sales.csv").symlink_to("/mnt/nowhere/sales.csv")
    (project / "data" / "archive" / "sales.csv.bak").write_text("id,amount\n")
    (project / ".gitignore").write_text("*.log\n")
    (project / "x.log").write_text("log")
    found = await source.look("Sum data/sales.csv. If that is not usable, look for a copy of it. See x.log.")
    assert found.listing.splitlines() == [
        "All files in the project directory, but for hidden and ignored ones (x.log):",
        "data/sales.csv (link to /mnt/nowhere/sales.csv, broken)",
        "data/archive/sales.csv.bak (10 B)",
        "All of x.log:",
        "log",
        "BROKEN LINK: data/sales.csv points to /mnt/nowhere/sales.csv, which does not exist."
        " Nearest: data/archive/sales.csv.bak",
    ]


async def test_a_project_of_hidden_files_is_not_called_empty(source: ProjectLook, roots: Roots) -> None:
    """They are named, without what is in them; a project without any file is empty."""
    assert "The project directory is empty." in (await source.look("list the files")).listing
    (roots.project / ".agents" / "skills").mkdir(parents=True)
    (roots.project / ".env").write_text("KEY=1")
    listing = (await source.look("list the files")).listing
    assert "The project directory has only hidden files (.agents, .env)." in listing and "empty" not in listing


async def test_hostile_trees_are_listed(source: ProjectLook, roots: Roots) -> None:
    """Names with newlines and bad UTF-8, loops of links, pipes and huge files neither break nor delay it."""
    project = roots.project
    for name in (b"a\nNOT HERE: b.txt", b"caf\xe9.txt"):
        (project / os.fsdecode(name)).write_text("x")
    (project / "loop").symlink_to(".")
    (project / "circle").symlink_to("circle")
    os.mkfifo(project / "pipe.csv")
    with (project / "huge.csv").open("wb") as file:
        file.write(b"id\n1\n")
        file.truncate(1 << 40)
    listing = (await source.look("Sum pipe.csv and huge.csv")).listing
    assert "a\\nNOT HERE: b.txt (1 B)" in listing.splitlines()
    assert "caf\\xe9.txt (1 B)" in listing.splitlines()
    assert "circle (link to circle, broken)" in listing
    assert "pipe.csv (not a file)" in listing
    listing.encode()


async def test_what_is_in_a_directory_is_not_guessed(source: ProjectLook, roots: Roots) -> None:
    """Only one with nothing in it is called empty: not one that is closed, nor one with hidden or ignored files."""
    for name in ("bare", "closed", "dots", "built", "full"):
        (roots.project / name).mkdir()
    for name in ("closed/a", "dots/.b", "built/c", "full/d"):
        (roots.project / name).touch()
    (roots.project / ".gitignore").write_text("built/*\n")
    (roots.project / "closed").chmod(0)
    try:
        lines = (await source.look("Hello")).listing.splitlines()
    finally:
        (roots.project / "closed").chmod(0o755)
    assert {
        "bare/ (empty)",
        "dots/ (hidden or ignored files only)",
        "built/ (hidden or ignored files only)",
    } <= set(lines)
    if os.getuid():
        assert "closed/ (cannot be read)" in lines and lines[0].startswith("Some of the files")
    else:
        assert "closed/a (0 B)" in lines and lines[0].startswith("All files")
