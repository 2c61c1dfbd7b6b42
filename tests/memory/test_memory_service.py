from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Level, Megram, MemoryAction, Origin
from artoo.contracts.tags import Pair, kind_pair, macro_pair, micro_pair, thing_pair, tool_pair
from artoo.memory.absent import NoMemory
from artoo.memory.service import SharedMemory
from artoo.ports.recall import Recall
from artoo.ports.remember import Remember
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

Make = Callable[..., Megram]

DAY = 86_400.0
FIND = micro_pair("shell:find", "/home/me")


async def write_all(memory: Remember, megrams: list[Megram]) -> None:
    """Writes and waits for the disk."""
    for megram in megrams:
        memory.write(megram)
    await memory.flush()


async def test_what_is_written_is_recalled(memory: SharedMemory, make: Make) -> None:
    """One failure makes its pair Avoid, with the exact sums of the table."""
    await write_all(memory, [make(FIND, "change_approach")])
    live = await memory.query_mk(*FIND)
    assert (live.attention, live.decision) == pytest.approx((0.85, -0.85), rel=1e-12)
    assert live.action is MemoryAction.AVOID


async def test_unknown_pairs_are_ignored(memory: SharedMemory) -> None:
    """A pair that was never seen has no potential."""
    live = await memory.query_mk("tool:x", "path:y")
    assert (live.attention, live.decision, live.action) == (0, 0, MemoryAction.IGNORE)


async def test_avoid_decays(memory: SharedMemory, make: Make, clock: FakeClock) -> None:
    """An Avoid is forgiven once its attention has decayed below one half."""
    await write_all(memory, [make(FIND, "change_approach")])
    clock.advance(10 * DAY)
    assert (await memory.query_mk(*FIND)).action is MemoryAction.AVOID
    clock.advance(DAY)
    assert (await memory.query_mk(*FIND)).action is MemoryAction.IGNORE


async def test_high_variance_is_caution(memory: SharedMemory, make: Make) -> None:
    """Five great and five terrible outcomes of one tool are Caution."""
    await write_all(memory, [make(FIND, state) for state in ("accept", "abandon") for _ in range(5)])
    assert (await memory.query_mk(*FIND)).action is MemoryAction.CAUTION


async def test_a_batch_keeps_its_order(memory: SharedMemory, make: Make) -> None:
    """Potentials come back in the order of the pairs, in one snapshot."""
    await write_all(memory, [make(FIND, "abandon")])
    found = await memory.potentials_of([tool_pair("glob"), FIND])
    assert [live.pair for live in found] == [tool_pair("glob"), FIND]
    assert [live.attention for live in found] == pytest.approx([0, 0.95])


async def test_rules_are_not_evidence(memory: SharedMemory, make: Make) -> None:
    """A C entry never enters the sums, however often it is there."""
    await write_all(memory, [make(FIND, level=Level.COMMON_SENSE) for _ in range(10)])
    assert (await memory.query_mk(*FIND)).attention == 0


async def test_query_c_restarts_the_clock(memory: SharedMemory, make: Make, clock: FakeClock) -> None:
    """Only the rules that query_c returns get a new last_recalled_at; reading potentials restarts nothing."""
    rule = make(FIND, level=Level.COMMON_SENSE, content="never search all of home")
    await write_all(memory, [rule])
    clock.advance(DAY)
    await memory.query_mk(*FIND)
    (first,) = await memory.query_c(*FIND)
    assert first.last_recalled_at is None
    await memory.flush()
    clock.advance(DAY)
    (second,) = await memory.query_c(*FIND)
    assert second.last_recalled_at == clock.now() - timedelta(days=1)
    assert second.created_at == rule.created_at


async def test_an_id_is_stored_once(memory: SharedMemory, make: Make) -> None:
    """Writing a megram twice counts it once."""
    megram = make(FIND)
    await write_all(memory, [megram, megram])
    assert (await memory.query_mk(*FIND)).attention == pytest.approx(0.9)


async def test_feedback_against_evidence_cancels_it(memory: SharedMemory, make: Make) -> None:
    """Negative feedback is a mirror image: attention doubles, the decision goes to zero, nothing is changed."""
    megram = make(FIND, origin=Origin(task_id="task-1"))
    await write_all(memory, [megram])
    memory.record_negative_feedback(megram.id, "that was wrong")
    await memory.flush()
    live = await memory.query_mk(*FIND)
    assert (live.attention, live.decision) == (pytest.approx(1.8), 0.0)
    assert live.action is MemoryAction.CAUTION
    assert await memory.taught_by("task-1") == (megram,)


async def test_feedback_against_a_rule_is_dissonance(memory: SharedMemory, make: Make) -> None:
    """Against a rule, feedback weighs .9 with the opposite sign."""
    rule = make(FIND, level=Level.COMMON_SENSE)
    await write_all(memory, [rule])
    memory.record_negative_feedback(rule.id, "not any more")
    await memory.flush()
    assert (await memory.query_mk(*FIND)).decision == pytest.approx(-0.9)


async def test_feedback_against_nothing_is_reported(memory: SharedMemory) -> None:
    """Feedback on an unknown id is lost, and flush says so, once."""
    memory.record_negative_feedback("no-such-id", "why")
    with pytest.raises(MemoryStoreError, match="does not exist"):
        await memory.flush()
    await memory.flush()
    assert memory.statistics.lost == 1


async def test_calibration_reaches_the_plan(memory: SharedMemory, make: Make) -> None:
    """A plan gets its macro experience, what to prefer, what not to do, what to be careful with, and places."""
    macro, glob, shell = macro_pair("find all pdf files"), tool_pair("glob"), tool_pair("shell:find")
    await write_all(
        memory,
        [
            make(macro, "accept", content="glob did it"),
            make(glob, "accept", content="fast"),
            make(FIND, "abandon"),
            make(shell, "abandon"),
            make(shell, "accept"),
            make(thing_pair("budget"), "accept", level=Level.KNOWLEDGE, content="/home/me/b.xlsx", k=0.2),
        ],
    )
    asked = [glob, shell, FIND, tool_pair("never seen"), thing_pair("budget")]
    advice = await memory.calibrate("find all pdf files", asked)
    assert {entry.pair for entry in advice.should_prefer} == {macro, glob}
    assert [entry.content for entry in advice.should_prefer if entry.pair == macro] == ["glob did it"]
    assert [entry.pair for entry in advice.must_not] == [FIND]
    assert [entry.pair for entry in advice.caution] == [shell]
    assert advice.must_not[0].enforced and advice.caution[0].enforced
    assert not any(entry.enforced for entry in advice.should_prefer)
    assert advice.known == ("/home/me/b.xlsx",)


async def test_advice_quotes_what_speaks_for_it(memory: SharedMemory, make: Make) -> None:
    """A recommendation quotes the newest success, a warning the newest failure, whatever came last."""
    macro, glob, shell = macro_pair("find all pdf files"), tool_pair("glob"), tool_pair("shell:find")
    megrams = [
        make(macro, "accept", content="was done with glob"),
        make(macro, "accept", content="was done with glob"),
        make(macro, "abandon", content="was abandoned before"),
        make(glob, "abandon", content="saw too much"),
        make(glob, "accept", content="saw it"),
        *[make(shell, "abandon") for _ in range(9)],
        *[make(shell, "accept", content="once in a while") for _ in range(5)],
    ]
    await write_all(memory, megrams)
    advice = await memory.calibrate("find all pdf files", [glob, shell])
    assert [entry.content for entry in advice.should_prefer] == ["was done with glob"]
    assert [entry.content for entry in advice.caution if entry.pair == glob] == ["saw too much"]
    assert [entry.content for entry in (*advice.caution, *advice.must_not) if entry.pair == shell] == [""]


async def test_a_place_that_was_wrong_is_not_known_any_more(memory: SharedMemory, make: Make) -> None:
    """Feedback against a place outweighs it: calibration does not repeat what a person has called wrong."""
    pair = thing_pair("budget")
    place = make(pair, "accept", level=Level.KNOWLEDGE, content="/old/b.xlsx", k=0.2)
    await write_all(memory, [place])
    assert (await memory.calibrate("x", [pair])).known == ("/old/b.xlsx",)
    memory.record_negative_feedback(place.id, "it is not there")
    await memory.flush()
    assert (await memory.calibrate("x", [pair])).known == ()


async def test_every_tool_that_was_met_is_listed_once(memory: SharedMemory, make: Make) -> None:
    """Wide pairs of all identities, whatever stands around them in the index; targets and intents are left out."""
    wide = [tool_pair(name) for name in ("glob", "shell", "shell:find", "tool}x", "工具")]
    around = [micro_pair("glob", f"p{number}") for number in range(50)]
    around += [micro_pair("only:targets", "a"), macro_pair("tool me")]
    await write_all(memory, [make(pair) for pair in (*around, *wide)])
    assert set(await memory.tool_pairs()) == set(wide)
    assert len(await memory.tool_pairs(limit=2)) == 2
    assert await NoMemory().tool_pairs() == ()


async def test_alternatives_worked_for_the_same_intent(memory: SharedMemory, make: Make) -> None:
    """Alternatives are Exploit pairs whose megrams come from tasks of the same intent."""
    mine = Origin(intent="find_all_pdf")
    await write_all(
        memory,
        [
            make(tool_pair("glob"), "accept", origin=mine),
            make(tool_pair("grep"), "abandon", origin=mine),
            make(tool_pair("curl"), "accept", origin=Origin(intent="fetch_a_page")),
            make(macro_pair("find all pdf"), "accept", origin=mine),
        ],
    )
    assert [live.pair for live in await memory.alternatives("Find all PDF")] == [tool_pair("glob")]


async def test_what_a_kind_of_request_knows_goes_before_what_others_know(memory: SharedMemory, make: Make) -> None:
    """A tool that worked once for an intent and failed since is no alternative for it, however well it does
    elsewhere; and it did not serve it, for the Dreamer's guesses.
    """
    mine, here = Origin(intent="find_all_pdf"), kind_pair("glob", "find all pdf")
    await write_all(memory, [make(tool_pair("glob"), "accept", origin=mine), make(here, "accept", origin=mine)])
    assert [live.pair for live in await memory.alternatives("Find all PDF")] == [here]
    assert await memory.dreams().intents(10) == {"find_all_pdf": frozenset({"glob"})}
    await write_all(memory, [make(here, "abandon", origin=mine) for _ in range(3)])
    await write_all(memory, [make(tool_pair("glob"), "accept") for _ in range(5)])
    assert await memory.alternatives("Find all PDF") == ()
    assert await memory.dreams().intents(10) == {}


async def test_a_tool_is_known_by_kinds_of_request(memory: SharedMemory, make: Make) -> None:
    """Each kind with its own verdict; targets, other tools, and the tool as such are none."""
    good, bad = kind_pair("glob", "find all pdf"), kind_pair("glob", "sort my mail")
    others = [tool_pair("glob"), micro_pair("glob", "x"), kind_pair("globe", "find all pdf")]
    await write_all(memory, [make(good), make(bad, "abandon"), *(make(pair) for pair in others)])
    found = await memory.dreams().kinds(tool_pair("glob"), 10)
    assert {each.pair: each.action for each in found} == {good: MemoryAction.EXPLOIT, bad: MemoryAction.AVOID}
    assert len(await memory.dreams().kinds(tool_pair("glob"), 1)) == 1


@pytest.mark.parametrize(
    "tag",
    ["a|b", "a%7Cb", "%#", "%", "x" * 5_000, "\n", "\0", "查找 文件", "🙂" * 200, "\u202eevil", "path:/a|b|c"],
)
async def test_hostile_tags(tag: str, memory: SharedMemory, make: Make, clock: FakeClock) -> None:
    """Whatever a tag holds, its pair is written, found, listed and told from its neighbours."""
    pairs = [Pair(tag, "e"), Pair("s", tag), Pair(tag, tag)]
    await write_all(memory, [make(pair) for pair in pairs])
    for pair in pairs:
        assert (await memory.query_mk(*pair)).attention == pytest.approx(0.9)
    shown = (await memory.books.overview(clock.now())).strongest[MemoryAction.EXPLOIT]
    assert {live.pair for live in shown} == set(pairs)
    assert (await memory.query_mk(tag + "|", "e")).attention == 0


async def test_closing_drains(tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds) -> None:
    """Everything that was queued before close is there after the next start; writing after close is counted."""
    shared = SharedMemory.open(tmp_path / "m", clock, ids)
    for _ in range(1_000):
        shared.write(make(FIND))
    await shared.close()
    await shared.close()
    shared.write(make(FIND))
    assert shared.statistics.dropped == 1
    again = SharedMemory.open(tmp_path / "m", clock, ids)
    assert (await again.query_mk(*FIND)).attention == pytest.approx(900)
    await again.close()
    with pytest.raises(MemoryStoreError):
        await again.query_mk(*FIND)


async def test_two_handles_in_one_process(tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds) -> None:
    """A second opener in the same process shares the file, and the first close does not close it for both."""
    one = SharedMemory.open(tmp_path / "m", clock, ids)
    other = SharedMemory.open(tmp_path / "m", clock, ids)
    await write_all(one, [make(FIND)])
    await one.close()
    assert (await other.query_mk(*FIND)).attention == pytest.approx(0.9)
    await other.close()


async def test_no_memory_fits_both_ports(make: Make) -> None:
    """Memory switched off recalls nothing and never fails."""
    absent = NoMemory()
    reader: Recall = absent
    await write_all(absent, [make(FIND)])
    absent.record_negative_feedback("x", "y")
    assert (await reader.potentials_of([FIND]))[0].action is MemoryAction.IGNORE
    assert await reader.calibrate("anything", [FIND]) == await reader.calibrate("else")
    assert not await reader.taught_by("t")
    assert not await reader.alternatives("anything")
    await absent.close()


def test_long_tags_are_found_again(make: Make) -> None:
    """The port's types accept the longest tag that the tag functions make."""
    pair = micro_pair("shell:cat", "x" * 50_000)
    assert make(pair).pair == Pair(*pair)


async def test_what_has_no_valence_is_no_verdict(memory: SharedMemory, make: Make) -> None:
    """A network that was down twice, or two notes of the dream cycle, say nothing about a tool."""
    await write_all(memory, [make(FIND, "change_path") for _ in range(4)])
    live = await memory.query_mk(*FIND)
    assert live.attention > 1
    assert live.action is MemoryAction.IGNORE
    assert (await memory.calibrate("anything", [FIND])).caution == ()


async def test_a_contradiction_is_written_down_once(memory: SharedMemory, make: Make) -> None:
    """Every later task that plans the tool sees the contradiction; only fresh evidence makes it a new one."""
    rule = make(FIND, "accept", level=Level.COMMON_SENSE)
    await write_all(memory, [rule, make(FIND, "change_approach")])
    (found,) = (await memory.calibrate("anything", [FIND])).contradicted
    assert (found.rule_id, found.noted) == (rule.id, False)
    memory.record_negative_feedback(rule.id, found.reason)
    await memory.flush()
    (again,) = (await memory.calibrate("anything", [FIND])).contradicted
    assert again.noted
    await write_all(memory, [make(FIND, "change_approach")])
    (fresh,) = (await memory.calibrate("anything", [FIND])).contradicted
    assert not fresh.noted
