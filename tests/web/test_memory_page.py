"""The memory page: the pyramid, a pair over time as it fades, what the Dreamer did and why, what it proposes."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from web_home import FIND, config_of, with_memory
from web_server import page_of

SAID = "find over the whole home took minutes"


def level(text: str, name: str) -> int:
    """What the pyramid says of a level."""
    found = re.search(rf'<li class="{name}"><b>{name}</b>.*?<span class="number">([\d,]+)</span>', text)
    assert found is not None, name
    return int(found[1].replace(",", ""))


async def test_the_pyramid_and_what_it_advises(tmp_path: Path) -> None:
    """How many entries each level has, and the strongest pairs of each advice."""
    await with_memory(tmp_path, SAID)
    async with page_of(tmp_path) as page:
        status, text = await page.get("/memory")
    assert status == 200, text
    assert (level(text, "T"), level(text, "C"), level(text, "K")) == (0, 1, 1)
    assert level(text, "M") >= 3
    avoid, prefer = text.index("<h2>What has failed</h2>"), text.index("<h2>What has worked</h2>")
    assert text.index(FIND.space, avoid) > avoid and text.index("tool:glob", prefer) > prefer


async def test_what_the_dreamer_did_and_why(tmp_path: Path) -> None:
    """Its real pass forgot what had faded: the pair and the reason stand there."""
    report = await with_memory(tmp_path, SAID)
    (gone,) = report.forgotten_examples
    async with page_of(tmp_path) as page:
        _, text = await page.get("/memory")
    assert f"it examined {report.examined} entries and forgot 1," in text
    assert f"forgot <code>{gone.space}</code> · <code>{gone.entity}</code>" in text
    assert gone.reason and gone.reason.split()[0] in text


async def test_a_pair_over_time_as_it_fades(tmp_path: Path) -> None:
    """Both potentials as a table from which the plot is drawn: they jump with an experience and fade after it."""
    await with_memory(tmp_path, SAID)
    async with page_of(tmp_path) as page:
        _, text = await page.get(f"/memory?space={FIND.space}&entity={FIND.entity}")
        same = (await page.get(f"/memory?pair={FIND.space}%20{FIND.entity}"))[1]
        unknown = (await page.get("/memory?pair=nobody%20ever%20asked%20this"))[1]
    table = text[text.index('id="curve"') : text.index("</table>", text.index('id="curve"'))]
    points = [float(one) for one in re.findall(r"</td><td>([\d.]+)</td><td>", table)]
    assert len(points) == 60
    ups = [place for place, (before, after) in enumerate(pairwise(points), 1) if after > before]
    assert len(ups) == 1, points  # the second experience, ten days after the first
    assert points[0] > points[ups[0] - 1] and points[ups[0]] > points[-1] > 0
    assert text.count(SAID) >= 2 and "<strong>It has failed, so artoo avoids it.</strong>" in text
    assert 'id="curve"' in same and "Memory has no entry about it." in unknown


async def test_proposals_are_accepted_and_refused(tmp_path: Path) -> None:
    """An accepted one is a file of the thinking layer; an answered one cannot be answered again."""
    await with_memory(tmp_path, SAID)
    async with page_of(tmp_path) as page:
        assert (await page.get("/memory"))[1].count("/memory/proposals/") == 2
        assert (await page.post("/memory/proposals/p-1", ("verdict", "perhaps")))[0] == 400
        status, text = await page.post("/memory/proposals/p-1", ("verdict", "accept"))
        assert status == 200 and level(text, "T") == 1
        status, text = await page.post("/memory/proposals/p-2", ("verdict", "refuse"))
        assert status == 200 and "/memory/proposals/" not in text and level(text, "T") == 1
        status, text = await page.post("/memory/proposals/p-2", ("verdict", "accept"))
        assert status == 400 and "refused already" in text
    (file,) = (tmp_path / "thinking").glob("*.md")
    assert file.read_text() == SAID + "\n"


async def test_memory_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A file where the store should be: a notice, and no error page."""
    config_of(tmp_path).memory_path.write_text("this is no store")
    async with page_of(tmp_path) as page:
        status, text = await page.get("/memory")
    assert status == 200 and "Memory cannot be read" in text
