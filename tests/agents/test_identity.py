"""Identity files: read with every mistake named, and never silently changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from core_doubles import Stream, office

from artoo.agents.identity.folders import AgentFolder, create_agent, find_agents
from artoo.agents.identity.identity import digest, read_identity, segments
from artoo.agents.mail.outbox import Outbox
from artoo.contracts.agents import OPERATOR, RUNTIME, AgentChanged
from artoo.contracts.errors import ActorRefused, ConfigurationError, IdentityRefused
from artoo.prompts.segments import Segment

GOOD = """\
name: zoe
role: researcher
persona: |
  You look things up
  and say where you found them.
skills: [search, summaries]
limits: {must_not: shell, calls: 50, seconds: 600}
tier: brain
"""


def written(tmp_path: Path, text: str, name: str = "zoe") -> AgentFolder:
    """An agent's folder with this identity."""
    folder = tmp_path / "agents" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "identity.yaml").write_text(text, encoding="utf-8")
    return AgentFolder(name, folder / "identity.yaml", folder / "HEARTBEAT.md")


def found(home: Path) -> tuple[list[str], str]:
    """Names of the agents there are, and the problems."""
    looked = find_agents(home, home / "config" / "agent_identity.yaml", home / "config" / "heartbeat_patrol.md")
    return [agent.name for agent in looked.agents], "\n".join(looked.problems)


def test_an_identity_is_read_whole(tmp_path: Path) -> None:
    """Persona, role, skills, limits and tier; its segments carry them, most of them in words."""
    folder = written(tmp_path, GOOD)
    identity = read_identity(folder.identity, "zoe")
    assert (identity.role, identity.tier, identity.skills) == ("researcher", "brain", ("search", "summaries"))
    assert (identity.limits.must_not, identity.limits.calls, identity.limits.money) == (("shell",), 50, None)
    texts = segments(identity)
    assert texts[Segment.AGENT_PERSONA].startswith("You are zoe, researcher.\nYou look things up\nand say")
    assert texts[Segment.AGENT_SKILLS].endswith("- search\n- summaries")
    assert texts[Segment.AGENT_LIMITS] == (
        "You have no right to use: shell.\nOne task may take you at most 50 model calls, 600 seconds."
    )


def test_a_role_is_not_said_twice(tmp_path: Path) -> None:
    """Without a persona of its own the role stands for it; the prompt says it once."""
    texts = segments(read_identity(written(tmp_path, "role: programmer\npersona: programmer\n").identity, "bob"))
    assert texts[Segment.AGENT_PERSONA] == "You are bob, programmer."


def test_what_is_not_said_costs_nothing(tmp_path: Path) -> None:
    """Without skills and limits their segments are empty."""
    texts = segments(read_identity(written(tmp_path, "role: r\npersona: p\n").identity, "zoe"))
    assert (texts[Segment.AGENT_SKILLS], texts[Segment.AGENT_LIMITS]) == ("", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("role: r\npersona: p\nskilz: [x]\n", r"identity.yaml:3:1: skilz is not a setting; did you mean skills\?"),
        ("role: r\npersona: p\nlimits: {cals: 3}\n", r":3:10: limits.cals is not a setting; did you mean calls\?"),
        ("role: r\npersona: p\nlimits: {calls: 0}\n", r":3:17: limits.calls is 0, but must be at least 1"),
        ("role: r\npersona: p\ntier: huge\n", r":3:7: tier is 'huge', but must be 'default', 'brain' or 'tool'"),
        ("role: r\n", r"persona is missing"),
        ("role: r\npersona: ''\n", r":2:10: persona is '', but must not be empty"),
        ("role: r\npersona: p\nname: ada\n", r":3:7: name is 'ada', but the folder is 'zoe'"),
        ("role: r\nrole: q\npersona: p\n", r":2:1: role stands here a second time"),
        ("role: [unclosed\n", r"not valid YAML"),
        ("just words\n", r"must be settings"),
        ("", r"the identity has 2 problems"),
    ],
)
def test_every_mistake_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    """Unknown keys, bad values, what is missing, what is no YAML: file, line, column, and what was meant."""
    with pytest.raises(ConfigurationError, match=says):
        read_identity(written(tmp_path, text).identity, "zoe")


@pytest.mark.parametrize("name", ["Zoe", "../up", "operator", "", "x" * 33, "ä"])
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    """The error says what a name looks like; nothing is made."""
    with pytest.raises(ConfigurationError, match="cannot be called"):
        create_agent(tmp_path, name, role="r", persona="p")
    assert not (tmp_path / "agents").exists()


def test_a_new_agent_is_found_as_it_was_meant(tmp_path: Path) -> None:
    """Whatever the words are, what is read is what was said; its HEARTBEAT.md is there and asks for nothing."""
    made = create_agent(
        tmp_path,
        "zoe",
        role="it's a: 'test' # not a comment",
        persona="  Line one: {odd}\n\n- line two 'quoted' \"so\"\n中文 too",
        skills=["a: b", "c#d"],
        must_not=["shell"],
    )
    assert read_identity(made.path, "zoe") == made
    assert made.role == "it's a: 'test' # not a comment"
    assert made.persona == "Line one: {odd}\n\n- line two 'quoted' \"so\"\n中文 too"
    assert (made.skills, made.limits.must_not) == (("a: b", "c#d"), ("shell",))
    assert found(tmp_path) == (["zoe"], "")
    with pytest.raises(ConfigurationError, match="already"):
        create_agent(tmp_path, "zoe", role="r", persona="p")


def test_folders_that_are_no_agents_are_named(tmp_path: Path) -> None:
    """A name that is not allowed and a folder without identity are problems; hidden folders and files are not."""
    written(tmp_path, GOOD)
    written(tmp_path, GOOD, "Bob")
    (tmp_path / "agents" / "empty").mkdir()
    (tmp_path / "agents" / ".cache").mkdir()
    (tmp_path / "agents" / "notes.txt").write_text("x")
    names, problems = found(tmp_path)
    assert names == ["zoe"]
    assert "Bob: an agent cannot be called 'Bob'" in problems
    assert "empty: there is no identity.yaml" in problems
    assert len(problems.splitlines()) == 2


def test_the_seeds_identity_file_is_an_agent(tmp_path: Path) -> None:
    """It needs no folder; its name is in it, or `artoo`; a folder of the same name is a second of one name."""
    default = tmp_path / "config" / "agent_identity.yaml"
    default.parent.mkdir()
    default.write_text("role: r\npersona: p\n")
    assert found(tmp_path) == (["artoo"], "")
    default.write_text(GOOD)
    written(tmp_path, GOOD)
    names, problems = found(tmp_path)
    assert names == ["zoe"]
    assert "two agents called 'zoe'" in problems
    looked = find_agents(tmp_path, default, default)
    assert looked.named("zoe").identity == default
    with pytest.raises(ConfigurationError, match="there are: zoe"):
        looked.named("ada")


@pytest.mark.usefixtures("engine")
async def test_an_identity_that_was_never_accepted_stops_its_agent(tmp_path: Path) -> None:
    """It takes nothing and is not loaded until the operator accepts; nobody else can."""
    folder = written(tmp_path, GOOD)
    async with office(tmp_path) as opened:
        await opened.registry.register("zoe", OPERATOR)
        await opened.board.add("x", OPERATOR)
        with pytest.raises(IdentityRefused, match=r"never accepted.*artoo agent accept zoe"):
            await opened.registry.load(folder)
        assert await opened.allocation.peek("zoe") is None
        with pytest.raises(ActorRefused, match="operator"):
            await opened.registry.accept(folder, "zoe")
        accepted = await opened.registry.accept(folder, OPERATOR)
        assert await opened.registry.load(folder) == accepted
        assert await opened.allocation.peek("zoe") is not None


@pytest.mark.parametrize("change", [GOOD + "# a comment\n", GOOD.replace("shell", "[]"), None])
@pytest.mark.usefixtures("engine")
async def test_a_changed_identity_stops_its_agent_until_it_is_accepted(tmp_path: Path, change: str | None) -> None:
    """Any change, and a file that is gone: stopped by `runtime`, on record; the old text back is not enough."""
    stream = Stream()
    folder = written(tmp_path, GOOD)
    async with office(tmp_path, team=False) as opened:
        await opened.registry.register("zoe", OPERATOR)
        await opened.registry.accept(folder, OPERATOR)
        await opened.registry.check(folder)
        folder.identity.unlink()
        if change is not None:
            written(tmp_path, change)
        with pytest.raises(IdentityRefused, match=r"its identity file is.*agents/zoe/identity\.yaml"):
            await opened.registry.check(folder)
        written(tmp_path, GOOD)
        with pytest.raises(IdentityRefused):
            await opened.registry.load(folder)
        await opened.registry.accept(folder, OPERATOR)
        await opened.registry.check(folder)
        await Outbox(opened.database, stream).drain()
    told = [record for record in stream.records if isinstance(record, AgentChanged)]
    assert [(record.change, record.actor) for record in told] == [
        ("created", OPERATOR),
        ("accepted", OPERATOR),
        ("stopped", RUNTIME),
        ("accepted", OPERATOR),
    ]


@pytest.mark.usefixtures("engine")
async def test_an_unknown_agent_is_named(tmp_path: Path) -> None:
    """The error lists those there are."""
    async with office(tmp_path) as opened:
        with pytest.raises(ConfigurationError, match="no agent 'zoe'; there are: ada, bob"):
            await opened.registry.pause("zoe", OPERATOR)
        with pytest.raises(ConfigurationError, match="cannot be called"):
            await opened.registry.register("Zoe", OPERATOR)


def test_a_pipe_is_no_identity(tmp_path: Path) -> None:
    """Nobody waits for a writer: a pipe in the place of an identity file is refused at once."""
    os.mkfifo(tmp_path / "identity.yaml")
    with pytest.raises(ConfigurationError, match="no ordinary file"):
        digest(tmp_path / "identity.yaml")
