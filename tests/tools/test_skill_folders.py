"""Skills are read in bounds, and a model gets their instructions in parts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.ports.sandbox import Roots
from artoo.tools.builtin.skill import ReadSkill, pieces
from artoo.tools.context.skills import LARGEST, LONGEST_TEXT, MOST_FILES, MOST_SKILLS, read_skill, skills_in
from artoo.workspace.files.rooted import real_files

FILES = real_files()


def made(folder: Path, text: str, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def skill_text(name: str, description: str = "for tests", body: str = "Do this.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


def test_a_skill_is_read(tmp_path: Path) -> None:
    """Front matter by YAML, with folded text and further fields; the body as it stands; every file."""
    text = (
        "---\nname: pdf-forms\ndescription: >\n  Fill in\n  forms.\nlicense: MIT\nmetadata:\n  by: me\n---\n"
        "# How\n\n---\nnot the end\n"
    )
    skill = read_skill(FILES, made(tmp_path / "x", text, run="echo hi"))
    assert (skill.name, skill.description) == ("pdf-forms", "Fill in forms.")
    assert skill.body == "# How\n\n---\nnot the end"
    assert [one.path for one in skill.files] == ["SKILL.md", "run"]


def test_the_digest_is_over_all_of_it(tmp_path: Path) -> None:
    """A byte, a mode, a name, one file more, other instructions: another digest each."""
    folder = made(tmp_path / "a", skill_text("a"), run="echo")
    seen = [read_skill(FILES, folder).digest]
    assert read_skill(FILES, folder).digest == seen[0]
    (folder / "run").write_text("other")
    seen.append(read_skill(FILES, folder).digest)
    (folder / "run").chmod(0o755)
    seen.append(read_skill(FILES, folder).digest)
    (folder / "run").rename(folder / "walk")
    seen.append(read_skill(FILES, folder).digest)
    (folder / "more").mkdir()
    (folder / "more" / "a").touch()
    seen.append(read_skill(FILES, folder).digest)
    made(folder, skill_text("a", body="Do that."))
    seen.append(read_skill(FILES, folder).digest)
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no front matter", "front matter"),
        ("---\nname: a\n", "front matter"),
        ("---\nname: [\n---\n", "YAML"),
        ("---\n" + "[" * 9_000 + "\n---\n", "too deep"),
        ("---\n- a\n---\n", "settings|name"),
        (skill_text("Upper"), "`name`"),
        (skill_text("a--b"), "`name`"),
        (skill_text("a" * 65), "`name`"),
        (skill_text("../x"), "`name`"),
        ("---\nname: a\n---\n", "`description`"),
        ("---\nname: a\ndescription: 7\n---\n", "`description`"),
        ("---\nname: a\ndescription: b\n---\n" + "x" * LONGEST_TEXT, "longer"),
        ("---\nname: a\nx: " + "y" * 20_000 + "\ndescription: b\n---\n", "front matter"),
    ],
)
def test_what_is_no_skill_is_told(tmp_path: Path, text: str, why: str) -> None:
    """Each in a sentence that says what is wrong."""
    with pytest.raises(ConfigurationError, match=why):
        read_skill(FILES, made(tmp_path / "a", text))


def test_what_is_no_text_or_too_much_is_told(tmp_path: Path) -> None:
    """Other encodings, too many files, too many bytes, too deep, a pipe: no skill, and nothing hangs."""
    folder = made(tmp_path / "a", "")
    (folder / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read_skill(FILES, folder)
    folder = made(tmp_path / "b", skill_text("b"), **{f"f{number}": "" for number in range(MOST_FILES)})
    with pytest.raises(ConfigurationError, match="files"):
        read_skill(FILES, folder)
    folder = made(tmp_path / "c", skill_text("c"), big="x" * (LARGEST + 1))
    with pytest.raises(ConfigurationError, match="MiB"):
        read_skill(FILES, folder)
    folder = made(tmp_path / "d", skill_text("d"))
    folder.joinpath(*"1234567").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="deeper"):
        read_skill(FILES, folder)
    folder = made(tmp_path / "e", skill_text("e"))
    os.mkfifo(folder / "pipe")
    with pytest.raises(ConfigurationError, match="plain file"):
        read_skill(FILES, folder)


def test_the_good_ones_of_a_folder_are_offered(tmp_path: Path) -> None:
    """A bad one is told and costs the others nothing; what leads out is none; there is a bound."""
    project = tmp_path / "project"
    folder = project / "skills"
    made(folder / "a", skill_text("a"))
    made(folder / "b", "nothing")
    made(tmp_path / "outside", skill_text("outside"))
    (folder / "c").symlink_to(tmp_path / "outside")
    found = skills_in(FILES, folder, project, foreign=True)
    assert [one.name for one in found.skills] == ["a"]
    assert [("leads out" in one, "front matter" in one) for one in found.problems] == [(False, True), (True, False)]
    for number in range(MOST_SKILLS + 5):
        made(tmp_path / "many" / f"s{number:02}", skill_text(f"s{number}"))
    assert len(skills_in(FILES, tmp_path / "many", tmp_path, foreign=False).skills) == MOST_SKILLS
    assert skills_in(FILES, tmp_path / "nowhere", tmp_path, foreign=False).skills == ()


async def test_the_tool_gives_instructions_in_parts(tmp_path: Path) -> None:
    """Whole lines, no more than a record keeps, all of them in the end; what there is not is told."""
    body = "\n".join(f"step {number}" for number in range(1_000))
    skill = read_skill(FILES, made(tmp_path / "a", skill_text("a", body=body), script="x"), foreign=True)
    tool = ReadSkill("skill", (skill,), Roots(tmp_path, tmp_path, tmp_path))
    first = await tool.run({"name": "a"})
    assert "not by the person who asks" in first.output
    assert "script" in first.output
    count = len(tuple(pieces(body)))
    texts = [(await tool.run({"name": "a", "part": str(number + 1)})).output for number in range(count)]
    assert all(len(text) <= 4_000 for text in texts)
    assert all(sum(f"step {number}\n" in f"{text}\n" for text in texts) >= 1 for number in range(1_000))
    for wrong in ({"name": "b"}, {"name": "a", "part": "0"}, {"name": "a", "part": "x"}):
        with pytest.raises(ToolError):
            await tool.run(wrong)
