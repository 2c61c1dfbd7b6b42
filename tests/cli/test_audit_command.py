"""`artoo audit`: reports, proof and records on the command line, and /audit in a conversation."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from click.testing import CliRunner, Result

from artoo import Artoo, Config, RunOptions
from artoo.cli.commands.audit_command import audit as audit_group
from artoo.cli.views.audit_view import report_lines
from artoo.contracts.audit import AuditReport
from artoo.testing import ScriptedModel, with_body

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}

SCRIPT = {
    "Plan": {"subtasks": [{"intent": "count them", "tool": "shell", "success_criteria": [ANSWERED]}]},
    "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt"),
}


async def _task(home: Path) -> AuditReport:
    project = home.parent / "project"
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("x\ny\n")
    config = Config(workspace=home.parent / "workspace").at_home(home)
    with ScriptedModel(SCRIPT) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            await artoo.run("How many lines has a.txt?", options=RunOptions(project=project))
            return await artoo.audit()


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(audit_group, arguments)


def test_before_anything_ran_there_is_nothing_to_report(home: Path) -> None:
    """Every command says so, and none of them makes a file."""
    assert "Nothing has been audited yet" in audit("report").output
    assert audit("verify").exit_code == 0
    assert not (home / "audit").exists()


def test_a_task_is_reported_once(home: Path) -> None:
    """The library's report takes the window; the command's next one is empty, and both are on record."""
    report = asyncio.run(_task(home))
    assert (report.trigger, report.tasks_ended, report.findings) == ("on-demand", {"accept": 1}, {})
    assert "tasks: 1 (accept 1)" in report_lines(report)
    assert "tasks: 0" in audit("report").output
    earlier = json.loads(audit("report", "--earlier", "5", "--json").output)
    assert [each["tasks_observed"] for each in earlier] == [1, 0]
    assert json.loads(audit("report", "--json").output)["trigger"] == "on-demand"


def test_a_whole_log_is_proved_and_a_forged_one_is_named(home: Path) -> None:
    """`verify` exits with 1 and names file, line and what was done to it."""
    asyncio.run(_task(home))
    whole = audit("verify")
    assert (whole.exit_code, whole.output.splitlines()[-1]) == (
        0,
        "whole: nothing that was recorded here is missing or was changed",
    )
    (chain,) = (home / "audit").glob("audit-*.jsonl")
    lines = chain.read_text().splitlines(keepends=True)
    chain.write_text("".join([*lines[:4], *lines[5:]]))
    broken = audit("verify")
    assert broken.exit_code == 1
    assert f"removed: {chain}, line 5: record 5 stood before this line" in broken.output
    (problem,) = json.loads(audit("verify", "--json").output)["problems"]
    assert (problem["file"], problem["line"], problem["what"]) == (str(chain), 5, "removed")


def test_an_older_copy_of_the_whole_home_shows_against_a_noted_head(home: Path) -> None:
    """Every verify says that it proves nothing of it, and gives the command that does."""
    asyncio.run(_task(home))
    old = home.parent / "old"
    shutil.copytree(home, old)
    asyncio.run(_task(home))
    (said,) = [line for line in audit("verify").output.splitlines() if line.startswith("to prove that later")]
    noted = said.split()[-1]
    assert audit("verify", "--head", noted).exit_code == 0
    shutil.rmtree(home)
    old.rename(home)
    whole = audit("verify")
    assert whole.exit_code == 0 and "not proved: that this home is not an older copy" in whole.output
    found = audit("verify", "--head", noted)
    assert found.exit_code == 1 and "you saw" in found.output
    assert audit("verify", "--head", "12").exit_code == 2


def test_the_decisions_of_a_task_are_proved_or_the_message_is_named(home: Path) -> None:
    """Every decision is reached again; of a log in which a verdict was turned, the first message that differs."""
    asyncio.run(_task(home))
    (log,) = (home / "tasks").glob("*/log.jsonl")
    task = log.parent.name
    proved = audit("verify", "--decisions", task)
    assert proved.exit_code == 0, proved.output
    assert f"task {task}: every decision was reached again (1 decisions" in proved.output
    log.write_text(log.read_text().replace('"verdict":"pass"', '"verdict":"fail"'))
    forged = audit("verify", "--decisions", task, "--json")
    decisions = json.loads(forged.output)["decisions"]
    assert forged.exit_code == 1 and not decisions["holds"] and "R4a" in decisions["difference"]
