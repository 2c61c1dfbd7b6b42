"""The loop of the conversation that `artoo` alone starts, and the execution of its slash commands.

A line is a request, or a command if it begins with a slash.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from artoo.cli.commands.exit_codes import INTERRUPTED
from artoo.cli.commands.run_command import Output, print_result
from artoo.cli.conversation.confirm import dialogue
from artoo.cli.conversation.own_commands import as_request, known_commands
from artoo.cli.conversation.pasted_images import images_in
from artoo.cli.conversation.prompt import Prompt
from artoo.cli.conversation.rewinding import fork, rewind, run_artoo
from artoo.cli.conversation.slash_commands import SLASH_COMMANDS, SlashCommand
from artoo.cli.conversation.talk import Talk, run_shell, show_sessions, without_marks
from artoo.cli.conversation.typed_lines import TypedLines
from artoo.cli.display import run_task as running
from artoo.cli.display.colors import is_plain
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.sanitize import asked_line, printable, show, show_as_it_is
from artoo.cli.display.screen import show_lines
from artoo.cli.display.side_channel import Aside
from artoo.cli.display.task_state import TaskView
from artoo.cli.results.redact_output import say
from artoo.contracts.errors import ArtooError
from artoo.contracts.findings import Unheard
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.config.endpoints import takes_images
from artoo.runtime.config.loader import load_config
from artoo.runtime.task.conversations import Session, open_session
from artoo.words.catalogue import Catalogue, in_language


def converse(*, name: str | None = None, latest: bool = False) -> int:
    """Run a conversation. It is a new one, one with a name, or the latest one. Returns the exit code."""
    if not sys.stdout.isatty():
        raise click.UsageError('a conversation needs a terminal; give a request: artoo "…"')
    return asyncio.run(_converse(name, latest))


async def _converse(name: str | None, latest: bool) -> int:
    config = load_config()
    session = open_session(config.home, name=name, latest=latest)
    text = in_language(_spoken(os.environ.get("LC_ALL") or os.environ.get("LANG") or ""))
    talk = Talk(config, text)
    prompt = Prompt(config.home, talk.status)
    aside, asking, sees = Aside(), dialogue(), takes_images(config, os.environ)
    try:
        with Interrupts(conversation=True) as interrupts:
            async with running.open_runtime(config, aside, asking) as runtime:
                terminal = running.Terminal(runtime, interrupts, aside, asking)
                await Conversation(terminal, prompt, text, config.home, session, talk, sees=sees).hold()
    except asyncio.CancelledError:
        return INTERRUPTED
    return 0


def _spoken(locale: str) -> str:
    """Return the language tag for a locale such as `zh_CN.UTF-8`."""
    return locale.partition(".")[0].replace("_", "-") or "en"


_ABOUT_TALK = frozenset(
    (
        SlashCommand.MODEL,
        SlashCommand.MODE,
        SlashCommand.PLAN,
        SlashCommand.COST,
        SlashCommand.CONTEXT,
        SlashCommand.SESSIONS,
    )
)


class Conversation:
    """A conversation at the terminal. `sees`: true if a configured model accepts images."""

    def __init__(
        self,
        terminal: running.Terminal,
        prompt: Prompt,
        text: Catalogue,
        home: Path,
        session: Session,
        talk: Talk,
        *,
        sees: bool = False,
    ) -> None:
        self._terminal = terminal
        self._talk = talk
        self._prompt = prompt
        self._text = text
        self._home = home
        self._session = session
        self._sees = sees

    async def hold(self) -> None:
        """Read and handle lines until the end of input or /quit."""
        from importlib.metadata import version

        banner = self._text(
            "artoo {version}. Say what you want done; /help lists commands, Ctrl-D leaves.",
            version=version("artoo"),
        )
        show_lines([banner], prose=True)
        for turn in self._session.turns:
            columns = shutil.get_terminal_size().columns
            answer = TaskView().laid_out(turn.summary, columns, colours=not is_plain(sys.stdout, os.environ))
            show_as_it_is(f"artoo> {printable(turn.input)}\n{answer}\n")
        while True:
            line = await self._prompt.read()
            if line is None:
                return
            words = line.split()
            if not words:
                continue
            if words[0].startswith("!"):
                await run_shell(line.strip()[1:])
                continue
            own = ":" in words[0] or words[0][1:] in known_commands(self._home)
            if words[0].startswith("/") and own and words[0][1:] not in SLASH_COMMANDS:
                await self._own_command(line.strip())
            elif not _is_slash(words[0]):
                await self._request(line.strip())
            elif not await self._command(words):
                return

    async def _own_command(self, line: str) -> None:
        """Run the request that results from a slash command of the user."""
        try:
            request = await as_request(line, self._home)
        except ArtooError as error:
            say(str(error))
            return
        await self._request(request)

    async def _request(self, request: str) -> None:
        """Run one request. An error is shown, and the conversation continues."""
        request, talk = without_marks(request), self._talk
        try:
            options = RunOptions(images=self._images(request), apply=talk.mode, plan=talk.plan, model=talk.model)
            history = self._session.turns
            result, view = await running.follow_task(
                self._terminal,
                self._terminal.runtime.stream(request, history=history, options=options),
                request,
                on_message=self._session.noting(request, None),
                line=TypedLines(self._prompt),
            )
        except ArtooError as error:
            say(str(error))
            return
        talk.ended(result)
        self._session.add_result(request, result)
        print_result(result, view, self._home, Output(talk=""))
        show("")
        dialogue = self._terminal.dialogue
        if dialogue is not None and (different := dialogue.take_different()):
            await self._request(different)
        elif unheard := [text for fact in result.facts if isinstance(fact, Unheard) for text in fact.texts]:
            # The user wrote them to get something done, so they are the next request.
            show_lines([self._text("Goes on with: {request}", request=asked_line("; ".join(unheard)))], prose=True)
            await self._request("\n".join(unheard))

    def _images(self, request: str) -> tuple[Path, ...]:
        """Print the names of the images in the line, and return them. Return none if no model accepts images."""
        found = images_in(request)
        for path in found:
            not_shown = (
                "{name} is not shown to the model, because no model is configured to take images "
                "(models.brain.images)"
            )
            show(self._text("image: {name}" if self._sees else not_shown, name=path.name))
        return found if self._sees else ()

    async def _audit(self) -> None:
        """Print the Auditor's report about the time since its previous report."""
        from artoo.cli.views.audit_view import report_lines

        show_lines(report_lines(await self._terminal.runtime.audit()))

    async def _go_back(self, command: SlashCommand, arguments: Sequence[str]) -> None:
        """Run /rewind (which undoes the last exchanges with their changes) or /fork (which continues under another
        name)."""
        config = load_config()
        try:
            if command is SlashCommand.FORK:
                self._session = fork(self._session, config, arguments)
            else:
                await rewind(self._session, config, arguments)
        except ArtooError as error:
            say(str(error))

    async def _about_talk(self, command: SlashCommand, arguments: Sequence[str]) -> None:
        """Show or change the settings for the requests of this conversation."""
        try:
            match command:
                case SlashCommand.MODEL:
                    if not await self._talk.choose_model(arguments):
                        await run_artoo(["model", *(arguments or ["list"])])
                case SlashCommand.MODE:
                    self._talk.set_mode(arguments)
                case SlashCommand.PLAN:
                    self._talk.toggle_plan()
                case SlashCommand.COST:
                    self._talk.show_cost()
                case SlashCommand.CONTEXT:
                    await self._talk.show_context(self._session, self._terminal.runtime)
                case _:
                    await show_sessions(self._home, self._session)
        except ArtooError as error:
            say(str(error))

    async def _command(self, words: Sequence[str]) -> bool:
        """Run a slash command. Returns False if the user wants to leave."""
        name, arguments = words[0][1:], list(words[1:])
        command = SLASH_COMMANDS.get(name)
        if command is SlashCommand.QUIT:
            return False
        if command is SlashCommand.HELP:
            lines = [f"  /{known:<8} {meaning.summary}" for known, meaning in SLASH_COMMANDS.items()]
            lines += [f"  /{name:<8} {each.description}" for name, each in known_commands(self._home).items()]
            rest = self._text("Anything else is a request. Ctrl-C stops a running task, Ctrl-D leaves.")
            show_lines([*lines, rest])
        elif command is SlashCommand.CLEAR:
            self._session.clear()
        elif command is SlashCommand.AUDIT:
            await self._audit()
        elif command in (SlashCommand.REWIND, SlashCommand.FORK):
            await self._go_back(command, arguments)
        elif command in _ABOUT_TALK:
            await self._about_talk(command, arguments)
        elif command is None:
            show(self._text("There is no command {name}; /help lists the commands.", name=f"/{name}"))
        else:
            await run_artoo([name, *(arguments or command.defaults)])
        return True


def _is_slash(word: str) -> bool:
    """Return whether a word is a command (`/help`). If not, it is the beginning of a request (`/etc/hosts`,
    `/tmp`)."""
    if not word.startswith("/") or "/" in word[1:]:
        return False
    # Any other word counts as a mistyped command, unless a file has that name.
    return word[1:] in SLASH_COMMANDS or not Path(word).exists()
