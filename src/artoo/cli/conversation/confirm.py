"""Ask an approval question on a terminal; the answers are in `words/question.py`, and `always` is here.

Reference: law 1.

If a question is longer than the screen, its main parts are repeated right above the prompt. Otherwise the author of
a long text could move them off the screen by adding lines.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Protocol, TextIO

from artoo.cli.conversation.always import allow_always, lines_for
from artoo.cli.display.display import Display
from artoo.cli.display.keyboard import Keyboard
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.screen import Screen
from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent, Words
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.approvals.prompt_store import Given
from artoo.words.catalogue import in_language
from artoo.words.question import SAID, TYPED, parts

_ALWAYS = frozenset(("a", "always", "总是", "始终"))


class Answer(Protocol):
    """A function that returns the answer of the task in rows of a terminal."""

    def __call__(self, columns: int, *, colours: bool) -> str:
        """Return the rows, or an empty text if there is no answer to show."""
        ...


def _no_answer(columns: int, *, colours: bool) -> str:
    del columns, colours
    return ""


class Dialogue:
    """Asks questions on `terminal` and reads the answers from `keyboard`, which are both terminals. Implements
    `ports.confirm.Confirm`."""

    def __init__(self, keyboard: TextIO, terminal: TextIO) -> None:
        self._keyboard = Keyboard(keyboard)
        self._screen = Screen.of(terminal)
        self._display = Display()
        self._answer: Answer = _no_answer
        self._different = ""
        self._turn = asyncio.Lock()

    @contextmanager
    def over(self, display: Display, answer: Answer | None = None) -> Generator[None]:
        """While the block runs, pause this display for each question. A review is shown below the text that
        `answer` returns."""
        self._display, self._answer = display, answer or _no_answer
        try:
            yield
        finally:
            self._display, self._answer = Display(), _no_answer

    def refuse(self) -> None:
        """Answer the question that is open with no, because the user wants to stop."""
        self._keyboard.give_up()

    async def message(self, question: str) -> str | None:
        """Ask for a line of text. Returns None at the end of input or if the user wants to stop."""
        async with self._turn, self._display.paused():
            self._keyboard.begin()
            self._screen.say(question)
            said = None
            try:
                said = await self._keyboard.read()
            finally:
                # If there was no answer, the line of the question has not been ended by Enter.
                if not said:
                    self._screen.say("\n")
        return said.strip() if said else None

    def answered_elsewhere(self, request: ConfirmationRequest, given: Given) -> None:
        """Print below the question that it was answered in another window, for example in the web UI."""
        text = in_language(request.language)
        if isinstance(given.said, Words):
            said = given.said.text
        else:
            said = text(SAID[given.said if isinstance(given.said, Consent) else Consent.ONCE])
        self._screen.say(f"\n{text('answered in the {where}: {said}', said=said, where=given.via)}\n")

    async def __call__(self, request: ConfirmationRequest) -> Consent | Choice | Words:
        """Ask the user. An empty line, or the end of input, means no. After a review, it means that the changes are
        kept."""
        async with self._turn, self._display.paused():
            self._keyboard.begin()
            if request.wants != "consent":
                return await self._in_words(request)
            if request.review is not None:
                return await self._reviewed(request)
            return await self._answered(request)

    async def _in_words(self, request: ConfirmationRequest) -> Consent | Words:
        """Ask for a line of text. If the question is about a plan, a clear yes or no is an answer too. The end of
        input means no."""
        text = in_language(request.language)
        self._screen.show(question_lines(request, request.details))
        self._keyboard.forget()
        of_plan = "Run it? [y]es, [n]o, or say what must be different: "
        self._screen.say(text(of_plan if request.wants == "plan" else "Your answer: "))
        # An empty line is an answer to a question in words, but it never approves a plan.
        said = await self._keyboard.read()
        line = said.strip()
        if not said or (request.wants == "plan" and not line):
            return Consent.NO
        known = TYPED.get(line.casefold()) if request.wants == "plan" else None
        return Words(text=line) if known is None else known

    async def _reviewed(self, request: ConfirmationRequest) -> Consent | Choice:
        from artoo.cli.results.relative_paths import Here
        from artoo.cli.review.review_prompt import ReviewPrompt

        assert request.review is not None
        # The user reads the answer before approving its changes.
        if answer := self._answer(self._screen.width, colours=self._screen.paint.colours):
            self._screen.show([*answer.split("\n"), ""])
        asking = ReviewPrompt(request.review, request.language, self._screen, self._keyboard, Here())
        decision = await asking.ask()
        self._different = asking.different
        return decision

    def take_different(self) -> str:
        """Return the text in which the user has said, at the last review, what must be different. Clear it
        afterwards. The text is empty if there was none."""
        said, self._different = self._different, ""
        return said

    async def _answered(self, request: ConfirmationRequest) -> Consent:
        text, lines = in_language(request.language), question_lines(request, request.details)
        in_sight = self._screen.fits(lines)
        self._screen.show(lines)
        # Keys that were pressed before the question was shown are not read as an answer.
        self._keyboard.forget()
        # The main parts of a long question are repeated right above the prompt.
        beside = "".join(f"{line}\n" for line in question_lines(request, parts(request)))
        lines = lines_for(request.acts)
        ask = text("Allow it? [o]nce, for this [t]ask, [N]o: ")
        if lines:
            named = one_line("; ".join(lines))
            ask = text("Allow it? [o]nce, for this [t]ask, [a]lways ({lines}), [N]o: ", lines=named)
        while True:
            self._screen.say(ask if in_sight else f"{beside}{ask}")
            said = await self._keyboard.read()
            if lines and said.strip().casefold() in _ALWAYS:
                return self._always(lines, request.language)
            consent = TYPED.get(said.strip().casefold()) if said else Consent.NO
            if consent is not None:
                self._screen.say(("" if said.endswith("\n") else "\n") + text(SAID[consent]) + "\n")
                return consent

    def _always(self, lines: tuple[str, ...], language: str) -> Consent:
        """Add permission lines to the configuration. If that fails, the operation is only allowed for this task."""
        text = in_language(language)
        try:
            said = text("allowed always, in {file}", file=allow_always(lines))
        except (ConfigurationError, OSError) as error:
            said = f"{text(SAID[Consent.TASK])}: {error}"
        self._screen.say(f"{one_line(said)}\n")
        return Consent.TASK


def dialogue() -> Dialogue | None:
    """Return the dialogue on the terminal of this process. Return None if there is no terminal, because every
    answer is no then."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return Dialogue(sys.stdin, sys.stderr)


def question_lines(request: ConfirmationRequest, details: Iterable[str]) -> list[str]:
    """Return the lines with the title, the source and these details."""
    lines = [f"? {one_line(request.title)}"]
    if request.source is not None:
        text = in_language(request.language)
        lines.append("  " + text("first named by: {source}", source=one_line(request.source)))
    return [*lines, *(f"  {printable(line)}" for line in details)]
