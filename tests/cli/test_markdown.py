"""Answers are rendered Markdown on a terminal, and the text as it is everywhere else."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from cli_process import artoo, model_at
from cli_terminal import terminal
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.cli.display.line_wrap import cells
from artoo.cli.display.markdown import rendered, split_complete
from artoo.testing import Asked
from artoo.testing.replies import Scripted
from artoo.testing.server import ScriptedServer

ANSWER = """\
# Clouds

There are **three** basic forms, named by *Luke Howard*, and this sentence is longer than a row of sixty columns:

3. `cirrus` is made of ice \x1b[31mhigh\x1b[0m up, \x1b]0;owned\x07and is usually the first sign of a warm front
7. cumulus
   - fair weather: small

| form | height | what it looks like |
|---|--:|---|
| cirrus | 6,000 m | thin wisps, white, with a silky sheen against the blue sky |
| 积云 | 600 m | heaps |

```python
print("clouds")
```

See [the atlas](https://cloudatlas.wmo.int/en/).
"""
LITERAL = """\
  3 apples
 12 pears
__init__.py and 2*3*4, 2**10 or 3**4, (1)*(2)*(3), List<int> &lt; C:\\Users\\x ^\\d+$
[1]: https://a.org/x_y_z?q=%20"""
_CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("columns", [60, 80, 140])
async def test_an_answer_is_rendered_to_the_width_of_the_terminal(project: Path, columns: int) -> None:
    """Signs of Markdown become styles, layout and indentation; escape sequences of the answer are never sent."""
    async with ScriptedServer(lambda _: {"reply": ANSWER}) as server:
        place, words = project.parent / ".artoo", ["run", "--no-memory", "Which clouds are there?"]
        with terminal("", words, place, model_at(server), columns=columns) as screen:
            assert await asyncio.to_thread(screen.end) == 0
    raw, lines = screen.raw.replace("\r\n", "\n"), screen.shown_all.replace("\r", "\n").split("\n")
    assert "\x1b[1;4mClouds\x1b[0m" in raw and "\x1b[1mthree\x1b[22m" in raw and "\x1b[3mLuke Howard\x1b[23m" in raw
    assert "3. \x1b[36mcirrus\x1b[39m is made of ice high up" in raw and "   • fair weather: small" in lines
    assert '  \x1b[36mprint("clouds")\x1b[39m' in raw and "the atlas (https://cloudatlas.wmo.int/en/)." in raw
    assert "\x1b]0;owned" not in raw and "\\x1b]0;owned" in screen.shown_all and "\x1b[31m" not in raw
    assert not {"```", "|---", "**"} & set(screen.shown_all.split())
    height = next(line for line in lines if line.startswith("form"))
    assert next(line for line in lines if line.startswith("积云")).index("600 m") + 2 == height.index("height") + 1
    assert [line for line in lines[lines.index("Clouds") :] if cells(line) > columns] == []


async def test_pipes_json_and_no_color_have_the_text_itself(project: Path) -> None:
    """A pipe, `--json` on a terminal, and a terminal without colours show the Markdown as the model wrote it."""
    words = ["run", "--no-memory", "Which clouds are there?"]
    async with ScriptedServer(lambda _: {"reply": ANSWER}) as server:
        _, piped, _ = await artoo(*words, environ=model_at(server))
        assert "| cirrus | 6,000 m | thin wisps" in piped and "**three**" in piped
        place = project.parent / ".artoo"
        with terminal("", [*words, "--json"], place, model_at(server), columns=5_000) as screen:
            assert await asyncio.to_thread(screen.end) == 0
        found = screen.shown_all[screen.shown_all.index('{"') :]
        assert "**three**" in json.loads(found)["output"]
        with terminal("", words, place, {**model_at(server), "NO_COLOR": "1"}) as screen:
            assert await asyncio.to_thread(screen.end) == 0
        assert "**three**" in screen.shown_all and "```python" in screen.shown_all


@pytest.mark.parametrize("delivers", [False, True])
async def test_a_conversation_streams_an_answer_once(project: Path, *, delivers: bool) -> None:
    """The text of the turn is rendered as it comes and not repeated at the end; output of a tool stays as it is."""
    text = "**bold** text\n\n- `code`\n- *last* words\n"
    (project / "raw.md").write_text(text)

    def play(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return {"subtasks": [{"sequence": 1, "intent": "show it"}]}
        if asked.contract == "ValidationReport":
            return {"verdicts": [{"number": 1, "quote": "bold", "verdict": "pass"}]}
        if not delivers:
            return text
        return (
            {"tool": "deliver", "call": 1} if "[1] ok" in asked.user else {"tool": "shell", "command": "cat raw.md"}
        )

    async with ScriptedServer(play) as server:
        with terminal("", ["chat"], project.parent / ".artoo", model_at(server)) as screen:
            await asyncio.to_thread(screen.wait_for, "/help lists")
            screen.send("Show it please\r")
            await asyncio.to_thread(screen.wait_for, "task 0")
            screen.send("/quit\r")
            assert await asyncio.to_thread(screen.end) == 0
    if delivers:
        assert "**bold** text" in screen.shown_all and "• " not in screen.shown_all
    else:
        assert screen.raw.count("\x1b[1mbold\x1b[22m text") == 1 and "**bold** text" not in screen.shown_all
        assert screen.raw.count("• \x1b[3mlast\x1b[23m words") == 1


def test_text_that_is_no_markdown_keeps_its_characters() -> None:
    """Names, expressions, regular expressions, HTML, sources and aligned columns are shown as they are written."""
    assert rendered(LITERAL, 200) == LITERAL


@settings(deadline=None)
@given(st.lists(st.sampled_from([*ANSWER.split("\n\n"), LITERAL, "> quoted\n> - x", "- a\n\n  b\n- c"])), st.data())
def test_a_growing_text_is_printed_in_final_form(blocks: list[str], data: st.DataObject) -> None:
    """Complete blocks are rendered as they are in the whole text, wherever the stream was cut."""
    text = "\n\n".join(blocks)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    printed, rows = 0, list[str]()
    for end in (*cuts, len(text)):
        complete, growing = split_complete(text[printed:end])
        assert complete + growing == text[printed:end]
        printed += len(complete)
        rows += rendered(complete, 80).split("\n") if complete else []
    rows += rendered(text[printed:], 80).split("\n")
    whole = rendered(text, 80).split("\n")
    assert [row for row in rows if row] == [row for row in whole if row]


@settings(deadline=None)
@given(st.text("ab1*_`#|-> \n[]()~\\", max_size=80), st.integers(1, 80))
def test_no_letter_is_lost(text: str, columns: int) -> None:
    """Whatever the signs, each letter and digit is shown, in its order outside of tables."""
    shown = _CODES.sub("", rendered(text, columns))
    assert sorted(re.findall("[ab1]", shown)) == sorted(re.findall("[ab1]", text))
