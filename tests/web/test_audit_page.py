"""The audit page: chains and anchors, violations, drift, tool health; and the proof."""

from __future__ import annotations

from pathlib import Path

from web_home import NATURES, with_audit
from web_server import page_of

from artoo.auditor.layout import audit_directory, chains_in
from artoo.auditor.reading import report_now
from artoo.runtime.app.system import SystemClock

SAID = "something that should not have been"


async def test_what_the_auditor_has_on_record(tmp_path: Path) -> None:
    """Findings of every nature, tool health, corrections, how D moved, and the anchored chains."""
    chain = with_audit(tmp_path, SAID)
    async with page_of(tmp_path) as page:
        status, text = await page.get("/audit")
    assert status == 200, text
    assert text.count(SAID) == len(NATURES)
    for name in ("Violations of invariants", "Anomalies", "Drift of figures", "Lost messages"):
        assert name in text and "(1)</h3>" in text, name
    assert "Of 4 calls of tools, 0 failed." in text and "because of the approach: 1," in text
    assert "got nearer to the goal <span" in text and "D 0.50 → 0.00" in text
    anchors = text[text.index('id="anchors"') :]
    assert chain in anchors and "closed in order" in anchors and "Heads of chains that are anchored: 1" in text


async def test_looking_changes_nothing(tmp_path: Path) -> None:
    """The window goes on: whoever asks for the report later gets all of it, and then it is an earlier one."""
    with_audit(tmp_path, SAID)
    before = {path: path.read_bytes() for path in sorted(audit_directory(tmp_path).iterdir())}
    async with page_of(tmp_path) as page:
        first, second = (await page.get("/audit"))[1], (await page.get("/audit"))[1]
        assert "Since the last report" in first and "Since the last report" in second
        assert before == {path: path.read_bytes() for path in sorted(audit_directory(tmp_path).iterdir())}
        report = report_now(tmp_path, SystemClock().now())
        assert report is not None and len(report.boundary_violations) == 1
        _, text = await page.get("/audit")
        assert "Since the last report" not in text and text.count(SAID) == len(NATURES)


async def test_the_logs_are_proved_whole_or_the_line_is_named(tmp_path: Path) -> None:
    """Each chain with its records and how it ended; a changed line is named with its file."""
    chain = with_audit(tmp_path, SAID)
    async with page_of(tmp_path) as page:
        status, text = await page.post("/audit/verify")
        assert status == 200 and "Whole: nothing that was recorded" in text, text
        row = text[text.index(f"<code>{chain}</code>") :]
        assert "in order" in row and '<td class="number">7</td>' in row
        ((path,),) = chains_in(audit_directory(tmp_path)).values()
        lines = path.read_bytes().splitlines(keepends=True)
        lines[3] = lines[3].replace(b"Plan", b"Plum")
        path.write_bytes(b"".join(lines))
        _, text = await page.post("/audit/verify")
    assert "NOT WHOLE" in text and f"{path}:4" in text
