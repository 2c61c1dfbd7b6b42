"""The gate: harmless changes happen, others only after a yes to exactly them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_world import World
from tool_doubles import said

from artoo.contracts.changes import digest_of
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Sandbox
from artoo.tools.gate import Gate
from artoo.tools.questions import AskNobody, AskPerson
from artoo.world.choose import open_sandbox

MakeWorld = Callable[..., World]


@pytest.fixture
async def staging(tmp_path: Path) -> Sandbox:
    """The best tier here; skipped where none stages changes."""
    found = await open_sandbox(tmp_path / "artoo")
    if found.tier not in ("bubblewrap", "namespaces"):
        pytest.skip("no tier that stages changes works here")
    return found


@pytest.fixture
def world(tmp_path: Path, staging: Sandbox) -> World:
    return World(tmp_path, staging)


async def test_new_files_take_effect_unasked(world: World) -> None:
    """A command and a script that make new files do so, their records name them, and nobody is asked."""
    (world.project / "names.txt").write_text("b\na\nb\n")
    call = await world.shell("sort -u names.txt > unique.txt")
    assert (call.status, call.changes, call.dropped) == (CallStatus.OK, world.paths("unique.txt"), ())
    call = await world.box.call("python", {"code": "open('out.csv', 'w').write('a,b')"})
    assert (call.status, call.changes) == (CallStatus.OK, world.paths("out.csv"))
    call = await world.write("report.txt", "x\n")
    assert (call.status, call.changes) == (CallStatus.OK, world.paths("report.txt"))
    assert (world.project / "unique.txt").read_text() == "a\nb\n"
    assert world.person.asked == []


async def test_what_the_task_made_is_its_own(world: World) -> None:
    """Files of this task are changed unasked by whichever tool; one that the user touched is the user's again."""
    await world.shell("echo 1 > a.txt")
    assert (await world.write("a.txt", "2\n")).status is CallStatus.OK
    assert (await world.shell("echo 3 >> a.txt && rm a.txt && echo 4 > a.txt")).status is CallStatus.OK
    (world.project / "a.txt").write_text("the user's\n")
    call = await world.shell("echo 5 > a.txt")
    assert (call.status, call.dropped) == (CallStatus.ERROR, world.paths("a.txt"))
    assert (world.project / "a.txt").read_text() == "the user's\n"


async def test_a_yes_makes_exactly_what_was_shown(world: World) -> None:
    """The question lists every change with its reason, sizes and a diff; after the yes they are made."""
    (world.project / "a.txt").write_text("one\ntwo\n")
    (world.project / "b.txt").write_text("gone\n")
    world.person.answers = [Consent.ONCE]
    call = await world.shell("sed -i s/two/2/ a.txt; rm b.txt; echo new > c.txt")
    assert (call.status, call.changes) == (CallStatus.OK, world.paths("a.txt", "b.txt", "c.txt"))
    assert (world.project / "a.txt").read_text() == "one\n2\n"
    assert not (world.project / "b.txt").exists()
    [question] = world.person.asked
    assert question.title == "shell: edits 1, delete 1"
    assert [(act.verb, act.target) for act in question.acts] == [
        ("edits", world.paths("a.txt")[0]),
        ("delete", world.paths("b.txt")[0]),
    ]
    text = "\n".join(question.details)
    for part in ("$ sed -i s/two/2/ a.txt; rm b.txt; echo new > c.txt", "-two", "+2", "is deleted", "also create"):
        assert part in text
    assert len(question.digest) == len(digest_of(()))


async def test_a_persons_no_drops_and_holds(world: World) -> None:
    """The record is an error with what is not done and whose no it was; nothing that contains it is asked again."""
    (world.project / "a.txt").write_text("mine\n")
    call = await world.shell("rm a.txt")
    assert (call.status, call.exit_code, call.withheld_by) == (CallStatus.ERROR, 0, "person")
    assert call.dropped == world.paths("a.txt")
    assert (world.project / "a.txt").read_text() == "mine\n"
    again = await world.box.call("python", {"code": "import os\nos.remove('a.txt')\nopen('b.txt', 'w')"})
    assert (again.status, again.withheld_by) == (CallStatus.ERROR, "person")
    assert not (world.project / "b.txt").exists()
    assert len(world.person.asked) == 1
    await world.shell("echo other > a.txt")  # another act: asked
    assert len(world.person.asked) == 2


async def test_nobody_to_ask_is_a_no(tmp_path: Path, world: World) -> None:
    """Without a person the change is dropped and the record says that nobody could be asked."""
    world.gate.questions = AskNobody()
    (world.project / "a.txt").write_text("mine\n")
    call = await world.write("a.txt", "yours\n")
    assert (call.status, call.withheld_by) == (CallStatus.ERROR, "nobody")
    assert "nobody can be asked" in said(call)
    assert (world.project / "a.txt").read_text() == "mine\n"


async def test_an_answer_for_the_task_is_for_the_same_act_only(world: World) -> None:
    """The same bytes to the same file are free for the rest of the task, other bytes are another act."""
    place = world.project / "a.txt"
    world.person.answers = [Consent.TASK, Consent.NO]
    for _ in range(2):
        place.write_text("mine\n")
        assert (await world.write("a.txt", "yours\n")).status is CallStatus.OK
    place.write_text("mine\n")
    assert (await world.write("a.txt", "others\n")).status is CallStatus.ERROR
    assert len(world.person.asked) == 2


async def test_a_change_meanwhile_is_a_conflict(world: World) -> None:
    """What the user did while the question was open stays; the act is refused whole, although it was agreed to."""
    (world.project / "a.txt").write_text("old\n")
    (world.project / "b.txt").write_text("old\n")
    world.person.answers = [Consent.ONCE]
    world.person.meanwhile = lambda: (world.project / "a.txt").write_text("the user's new text\n")
    call = await world.shell("echo x > a.txt; rm b.txt")
    assert call.status is CallStatus.ERROR
    assert "conflict" in said(call)
    assert set(call.dropped) == set(world.paths("a.txt", "b.txt"))
    assert (world.project / "a.txt").read_text() == "the user's new text\n"
    assert (world.project / "b.txt").exists()


async def test_parallel_subtasks_lose_no_update(world: World) -> None:
    """Two commands that make the same file at once: one takes effect, the other is reported, or both in turn."""
    both = await asyncio.gather(world.shell("echo 1 > x; sleep 0.3"), world.shell("echo 2 > x; sleep 0.3"))
    done = [call for call in both if call.status is CallStatus.OK]
    failed = [call for call in both if call.status is not CallStatus.OK]
    assert len(done) == 1
    assert failed[0].dropped == world.paths("x")


async def test_one_question_at_a_time(world: World) -> None:
    """Questions of parallel subtasks wait for each other."""
    open_now = most = 0

    async def slowly(request: ConfirmationRequest) -> Consent:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.05)
        open_now -= 1
        return Consent.NO

    world.gate.questions = AskPerson(slowly)
    for name in "abc":
        (world.project / name).touch()
    await asyncio.gather(*(world.shell(f"rm {name}") for name in "abc"))
    assert most == 1


async def test_a_command_that_was_stopped_changes_nothing(world: World) -> None:
    """What a timed-out command made is gone, and its record is no success."""
    shell = next(tool for name, tool in world.box.tools.items() if name == "shell")
    object.__setattr__(shell, "command_seconds", 0.5)
    call = await world.shell("echo half > out.txt; sleep 30")
    assert (call.status, call.changes) == (CallStatus.TIMEOUT, ())
    assert not (world.project / "out.txt").exists()


async def test_a_failed_command_leaves_what_it_made(world: World) -> None:
    """As without a gate: the record is an error, and names what is there now."""
    call = await world.shell("echo half > out.txt; false")
    assert (call.status, call.changes) == (CallStatus.ERROR, world.paths("out.txt"))


async def test_sensitive_places_always_ask(world: World) -> None:
    """Start-up files, hooks and places outside project and workspace are asked about with what is in them."""
    hook = "mkdir -p .git/hooks && echo evil > .git/hooks/x"
    for command in ("echo evil >> ~/.bashrc", hook, "echo a > ~/b.txt"):
        call = await world.shell(command)
        assert (call.status, call.withheld_by) == (CallStatus.ERROR, "person"), command
    assert len(world.person.asked) == 3
    assert any("+evil" in line for line in world.person.asked[0].details)
    assert world.person.asked[0].acts[0].sensitive


async def test_names_cannot_forge_a_line(world: World) -> None:
    """A newline, an escape sequence and a direction mark in a name are written out in the question."""
    for name in ("a\nalso create b", "c\x1b[2Jd", "e\u202ef"):
        (world.project / name).write_text("x")
    await world.shell("rm *")
    [question] = world.person.asked
    assert all(line.isprintable() for line in question.details)
    text = "\n".join(question.details)
    assert all(part in text for part in ("a\\nalso", "c\\x1b[2Jd", "e\\xe2\\x80\\xaef"))


async def test_every_loss_is_listed(world: World) -> None:
    """Three hundred deletions are three hundred lines."""
    for number in range(300):
        (world.project / f"{number:03d}.tmp").write_text("x")
    await world.shell("rm *.tmp")
    text = "\n".join(world.person.asked[0].details)
    assert all(f"{number:03d}.tmp" in text for number in range(300))


async def test_a_chinese_request_is_asked_about_in_chinese(world: World) -> None:
    """Title and reasons are in the language of the request."""
    world.gate.origins.request = "删除文件"
    (world.project / "a.txt").write_text("x")
    await world.shell("rm a.txt")
    question = world.person.asked[0]
    assert (question.language, question.title) == ("zh", "shell: 删除 1")
    assert any("将被删除" in line for line in question.details)


async def test_writing_the_same_again_changes_nothing(world: World) -> None:
    """Content that is already there exactly is no failure and no question."""
    (world.project / "a.txt").write_text("x\n")
    call = await world.write("a.txt", "x\n")
    assert (call.status, call.changes, call.ran) == (CallStatus.OK, (), "nothing was written")
    assert world.person.asked == []


async def test_places_that_cannot_be_written(world: World) -> None:
    """Outside of everything, and where a directory is: an error, not a question."""
    assert (await world.write("/etc/artoo-test", "x")).status is CallStatus.ERROR
    (world.project / "folder").mkdir()
    assert (await world.write("folder", "x")).status is CallStatus.ERROR
    assert world.person.asked == []


async def test_a_gate_without_questions_asks_nobody() -> None:
    """The default gate answers no."""
    request = ConfirmationRequest(digest="d", title="t")
    refusal = await Gate().refusal(request)
    assert refusal is not None
    assert refusal.by == "nobody"
