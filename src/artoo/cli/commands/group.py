"""The table of commands with each line in `artoo --help`, sections, aliases, and misspelled commands.

This module contains the groups behind `artoo`, `artoo serve` and `artoo config`.

Each command has one line here. The module of a command is imported only when the command is called. Words that are
no command are a request.
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
"""Minimum similarity (the ratio of `difflib`) with which a word counts as a misspelled command."""
_MOST_WORDS = 2
"""Maximum number of words that follow the first one in a misspelled command. A request usually has more."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A command. It is given by its module in this folder, its name in the module, and its line in `--help`."""

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
        "run": Mounted("run_command", "run", "Run a request. Also: artoo TEXT. artoo alone starts a conversation."),
        "review": Mounted("review_command", "review", "Review a diff or a branch, without any change."),
        "resume": Mounted("run_command", "resume", "Continue a task that stopped before its end."),
        "attach": Mounted("attach_command", "attach", "Follow a running task, and answer its questions."),
        "say": Mounted("running_commands", "say", "Send a message to a running task."),
        "status": Mounted("status_command", "status", "Show what needs you, and the state of the team."),
        "ps": Mounted("running_commands", "ps", "List running tasks, and processes that tasks left running."),
        "stop": Mounted("running_commands", "stop", "Stop a running task, or a process that a task left running."),
    },
    "Changes": {
        "diff": Mounted("changes_commands", "diff", "Show the pending changes of a task."),
        "apply": Mounted("changes_commands", "apply", "Apply the pending changes of a task, or some of them."),
        "discard": Mounted("changes_commands", "discard", "Discard the pending changes of a task."),
        "undo": Mounted("undo_command", "undo", "Undo the changes that a task applied."),
        "sandbox": Mounted("sandbox_command", "sandbox", "Run one command in a workspace, without a model."),
    },
    "Records": {
        "log": Mounted("log_command", "log", "Show and replay the logs of tasks."),
        "audit": Mounted(
            "audit_command", "audit", "Show the report of the Auditor, verify logs, show the Four Laws."
        ),
        "memory": Mounted("memory_command", "memory", "Show and correct what artoo has learned."),
    },
    "Team and servers": {
        "serve": Mounted(
            "team.serve_command", "serve", "Run the team, or a server for browsers, editors and programs."
        ),
        "service": Mounted("team.service_command", "service", "Keep artoo serve running, with systemd or launchd."),
        "agent": Mounted("team.agent_command", "agent", "Create, show, trust and pause standing agents."),
        "task": Mounted("team.task_command", "task", "Manage the board of tasks that agents work on."),
        "mail": Mounted("team.mail_command", "mail", "Read and send letters between you and the agents."),
    },
    "Setup": {
        "init": Mounted("config_command", "init", "Write a commented configuration."),
        "config": Mounted("config_command", "config", "Show, change or tune the configuration."),
        "doctor": Mounted("doctor_command", "doctor", "Check this machine, and say how to fix what does not work."),
        "model": Mounted("model_command", "model_group", "List, download, choose and remove local models."),
        "skill": Mounted("skill_command", "skill", "List skills, and approve those of projects."),
        "trust": Mounted("trust_command", "trust", "List and approve the hooks and commands of projects."),
        "mcp": Mounted("mcp_command", "mcp", "Manage the MCP servers whose tools artoo may use."),
        "store": Mounted(
            "team.store_command", "store", "Set up the PostgreSQL database that several machines share."
        ),
        "help": Mounted("misc_commands", "help_", "Show all commands, or the help of one."),
    },
}
"""The commands that `artoo --help` lists."""

SERVERS: Table = {
    "team": Mounted("team.serve_command", "team", "Run the standing agents."),
    "worker": Mounted("team.serve_command", "worker", "Work for the agents of other machines."),
    "web": Mounted("web_command", "web", "Serve the web UI."),
    "mcp": Mounted("mcp_command", "serve_mcp", "Serve MCP to other programs."),
    "acp": Mounted("team.serve_command", "acp", "Serve editors (Agent Client Protocol)."),
    "a2a": Mounted("team.serve_command", "a2a", "Serve foreign agents (Agent2Agent)."),
}
"""The commands that `artoo serve --help` lists."""

SETTINGS: Table = {
    "tune": Mounted("tune_command", "tune", "Propose better numbers for the control law, from your own logs."),
    "completion": Mounted("misc_commands", "completion", "Print shell completion for bash, zsh or fish."),
}
"""The commands of `artoo config`, except those about its file."""

ALIASES: Table = {
    **{name: mounted for name, mounted in SERVERS.items() if name not in ("team", "mcp")},
    **SETTINGS,
    "chat": Mounted("misc_commands", "chat", "Start a conversation."),
    "laws": Mounted("audit_command", "laws", "Show the Four Laws and what enforces them."),
    "version": Mounted("misc_commands", "version", "Show the version."),
}
"""Other names of commands at the top level. This version accepts them, but does not list them."""

COMMANDS: Table = {name: each for table in (*SECTIONS.values(), ALIASES) for name, each in table.items()}


class LazyGroup(click.Group):
    """A group that lists its commands (`mounted`) without importing their modules."""

    def __init__(self, *args: Any, mounted: Table, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.mounted = mounted

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, without importing their modules."""
        return [*super().list_commands(ctx), *self.mounted]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. Its module is imported if necessary."""
        mounted = self.mounted.get(cmd_name)
        return super().get_command(ctx, cmd_name) if mounted is None else mounted.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries. The summaries of mounted commands are in the table."""
        own = [(name, command.get_short_help_str(80)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *((name, each.summary) for name, each in self.mounted.items())])


class TopGroup(LazyGroup):
    """The group of `artoo COMMAND …`, which also accepts `artoo any request in plain words`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the listed commands, without aliases."""
        return [name for name in self.mounted if name not in ALIASES]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands section by section."""
        for section, table in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, each.summary) for name, each in table.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` before arguments that begin neither with a command nor with an option of artoo itself."""
        # A request in plain words has no command before it, so any other first word begins a request.
        if args and args[0] not in OWN_OPTIONS and args[0] not in self.mounted:
            self._refuse_what_is_no_request(ctx, args)
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def _refuse_what_is_no_request(self, ctx: click.Context, args: list[str]) -> None:
        """Raise UsageError for an option at the wrong place, or for a misspelled command.

        In `artoo --json status`, the option is at the wrong place, because it comes before its command. `artoo
        modle`, `artoo doctro --json` and `artoo agnet show bob` are misspelled. `artoo modle the world` is a
        request, because it does not have the form of a command. That form is a single word, or a word with a
        subcommand and at most one more word.
        """
        words = self._words(ctx, args)
        if not words:
            return
        word, *more = words
        request = " ".join(("artoo", DEFAULT_COMMAND, *args))
        if word in self.mounted:
            hint = f"a command's options stand after its name: artoo {word} --help. (For a request: {request})"
            raise click.UsageError(f"{word!r} is a command; {hint}", ctx)
        # Only words in the form of a command can be a misspelled command. All other words are a request.
        if len(word.split()) != 1 or len(more) > _MOST_WORDS:
            return
        from difflib import get_close_matches

        near = get_close_matches(word.lower(), self.mounted, n=1, cutoff=ALIKE)
        if near and (not more or self._is_part_of(ctx, near[0], more[0])):
            raise click.UsageError(
                f"There is no command {word!r}. Did you mean {near[0]!r}? (For a request: {request})", ctx
            )

    def _words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the words of a request without its options. Return no words if `--` marks the arguments as a
        request."""
        run = self.get_command(ctx, DEFAULT_COMMAND)
        if run is None or "--" in args:
            return []
        parsed = run.make_context(DEFAULT_COMMAND, list(args), parent=ctx, resilient_parsing=True)
        found: object = parsed.params["text"]
        if isinstance(found, tuple) and found:
            return list(map(str, cast("tuple[object, ...]", found)))
        # `run` does not have these options, so they belong to the command that the user meant.
        return [] if args[0].startswith("-") else [each for each in args if not each.startswith("-")]

    def _is_part_of(self, ctx: click.Context, name: str, word: str) -> bool:
        """Check whether `word` is a subcommand of `name`."""
        command = self.get_command(ctx, name)
        return isinstance(command, click.Group) and word in command.list_commands(ctx)
