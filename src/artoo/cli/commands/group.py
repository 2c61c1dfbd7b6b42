"""Which commands there are, and the groups behind `artoo`, `artoo serve` and `artoo config`.

A command is one line here. It is loaded when it is called, and free text is read as a request.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import click

DEFAULT_COMMAND = "run"
OWN_OPTIONS = frozenset({"-h", "--help", "--version"})
ALIKE = 0.75
"""How near a word must come to a command's name to be a misspelling of it (difflib ratio)."""
_MOST_WORDS = 2
"""After the first, in what may be a command. A sentence has more."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A command: the module in this folder and the attribute that hold it, and what `--help` says about it."""

    module: str
    attribute: str
    summary: str

    def load(self) -> click.Command:
        """Import the command."""
        module = importlib.import_module(f"artoo.cli.commands.{self.module}")
        command: object = getattr(module, self.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.module}.{self.attribute} is not a command")
        return command


Table = Mapping[str, Mounted]

SECTIONS: Mapping[str, Table] = {
    "Tasks": {
        "run": Mounted("run_command", "run", "Do what TEXT asks (also: artoo TEXT; artoo alone: a conversation)."),
        "review": Mounted("review_command", "review", "Review a diff or a branch, and change nothing."),
        "resume": Mounted("run_command", "resume", "Go on with a task that stopped before its end."),
        "attach": Mounted("attach_command", "attach", "Follow a running task, and answer its questions."),
        "say": Mounted("running_commands", "say", "Write to a task that runs."),
        "status": Mounted("status_command", "status", "What waits for you, and the team at a glance."),
        "ps": Mounted("running_commands", "ps", "Show running tasks, and what tasks left running."),
        "stop": Mounted("running_commands", "stop", "Stop a running task, or what a task left running."),
    },
    "Changes": {
        "diff": Mounted("changes_commands", "diff", "Show what a task would change, that waits for you."),
        "apply": Mounted("changes_commands", "apply", "Apply what a task changed, or a part of it."),
        "discard": Mounted("changes_commands", "discard", "Drop what a task changed."),
        "undo": Mounted("undo_command", "undo", "Put back what a task changed."),
        "sandbox": Mounted("sandbox_command", "sandbox", "Run one command as a task, without a model."),
    },
    "Records": {
        "log": Mounted("log_command", "log", "Look at what tasks did."),
        "audit": Mounted("audit_command", "audit", "What the Auditor saw; are logs as written; the Four Laws."),
        "memory": Mounted("memory_command", "memory", "Look at what was learnt."),
    },
    "Team and servers": {
        "serve": Mounted("serve_command", "serve", "Let the agents work; serve browsers, editors, programs."),
        "service": Mounted("service_command", "service", "Keep artoo serve running: systemd or launchd."),
        "agent": Mounted("agent_command", "agent", "Standing agents: make, show, trust, pause them."),
        "task": Mounted("task_command", "task", "The board of tasks that agents work on."),
        "mail": Mounted("mail_command", "mail", "Letters between you and the agents."),
    },
    "Setup": {
        "init": Mounted("config_command", "init", "Write a commented configuration."),
        "config": Mounted("config_command", "config", "Look at the configuration, change or tune it."),
        "doctor": Mounted("doctor_command", "doctor", "Check this machine and say what to mend."),
        "model": Mounted("model_command", "model_group", "The local model: list, fetch, choose, remove."),
        "skill": Mounted("skill_command", "skill", "Skills, and what you said to those of projects."),
        "trust": Mounted("trust_command", "trust", "Hooks and commands of projects, and your answers to them."),
        "mcp": Mounted("mcp_command", "mcp", "MCP servers whose tools artoo may use."),
        "store": Mounted("store_command", "store", "The PostgreSQL that several machines share."),
        "help": Mounted("misc_commands", "help_", "Show what there is, or what a command does."),
    },
}
"""What `artoo --help` lists."""

SERVERS: Table = {
    "team": Mounted("serve_command", "team", "Let the standing agents work."),
    "worker": Mounted("serve_command", "worker", "Work for agents of other machines."),
    "web": Mounted("web_command", "web", "Watch and settle tasks in a browser."),
    "mcp": Mounted("mcp_command", "serve_mcp", "Serve MCP to other programs."),
    "acp": Mounted("serve_command", "acp", "Serve editors (Agent Client Protocol)."),
    "a2a": Mounted("serve_command", "a2a", "Serve foreign agents (Agent2Agent)."),
}
"""What `artoo serve --help` lists."""

SETTINGS: Table = {
    "tune": Mounted("tune_command", "tune", "Better numbers for the control law, from your own logs."),
    "completion": Mounted("misc_commands", "completion", "Completion for bash, zsh or fish."),
}
"""What `artoo config` has besides the commands about its file."""

ALIASES: Table = {
    **{name: mounted for name, mounted in SERVERS.items() if name not in ("team", "mcp")},
    **SETTINGS,
    "chat": Mounted("misc_commands", "chat", "Talk (also: artoo alone)."),
    "laws": Mounted("audit_command", "laws", "Show the Four Laws and what enforces them."),
    "version": Mounted("misc_commands", "version", "Show the version."),
}
"""Names at the top level that this version still takes and does not list."""

COMMANDS: Table = {name: each for table in (*SECTIONS.values(), ALIASES) for name, each in table.items()}


class LazyGroup(click.Group):
    """A group whose `mounted` commands are listed without being loaded."""

    def __init__(self, *args: Any, mounted: Table, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.mounted = mounted

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, without loading anything."""
        return [*super().list_commands(ctx), *self.mounted]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        mounted = self.mounted.get(cmd_name)
        return super().get_command(ctx, cmd_name) if mounted is None else mounted.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands; those that are mounted with what the table says."""
        own = [(name, command.get_short_help_str(80)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *((name, each.summary) for name, each in self.mounted.items())])


class TopGroup(LazyGroup):
    """`artoo COMMAND …`, or `artoo any request in plain words`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names that are listed: without aliases."""
        return [name for name in self.mounted if name not in ALIASES]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands section by section."""
        for section, table in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, each.summary) for name, each in table.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` before anything that is neither a command nor an option of artoo itself."""
        if args and args[0] not in OWN_OPTIONS and args[0] not in self.mounted:
            self._refuse_what_is_no_request(ctx, args)
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def _refuse_what_is_no_request(self, ctx: click.Context, args: list[str]) -> None:
        """`artoo --json status` has an option before its command, and `artoo modle`, `artoo doctro --json`,
        `artoo agnet show bob` are mistakes; `artoo modle the world` is a request: what is alone, or goes on with a
        part of that command and at most one word, has a command's form.
        """
        words = self._words(ctx, args)
        if not words:
            return
        word, *more = words
        request = " ".join(("artoo", DEFAULT_COMMAND, *args))
        if word in self.mounted:
            hint = f"a command's options stand after its name: artoo {word} --help. (For a request: {request})"
            raise click.UsageError(f"{word!r} is a command; {hint}", ctx)
        if len(word.split()) != 1 or len(more) > _MOST_WORDS:
            return
        from difflib import get_close_matches

        near = get_close_matches(word.lower(), self.mounted, n=1, cutoff=ALIKE)
        if near and (not more or self._is_part_of(ctx, near[0], more[0])):
            raise click.UsageError(
                f"There is no command {word!r}. Did you mean {near[0]!r}? (For a request: {request})", ctx
            )

    def _words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words of a request, without its options and their values; none where `--` says that it is one."""
        run = self.get_command(ctx, DEFAULT_COMMAND)
        if run is None or "--" in args:
            return []
        parsed = run.make_context(DEFAULT_COMMAND, list(args), parent=ctx, resilient_parsing=True)
        found: object = parsed.params["text"]
        if isinstance(found, tuple) and found:
            return list(map(str, cast("tuple[object, ...]", found)))
        # An option that a request has not got: it is one of the command that was meant.
        return [] if args[0].startswith("-") else [each for each in args if not each.startswith("-")]

    def _is_part_of(self, ctx: click.Context, name: str, word: str) -> bool:
        """True when `word` is a subcommand of `name`."""
        command = self.get_command(ctx, name)
        return isinstance(command, click.Group) and word in command.list_commands(ctx)
