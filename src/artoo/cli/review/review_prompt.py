"""The question at a task's end (`[a]pply all, [c]hoose, [k]eep, [d]iscard`), and its accepted answers."""

from __future__ import annotations

from artoo.cli.conversation.yes_no import is_yes
from artoo.cli.display.keyboard import Keyboard
from artoo.cli.display.screen import Screen
from artoo.cli.results.relative_paths import Here
from artoo.cli.review.layout import Layout
from artoo.cli.review.selection import chosen
from artoo.contracts.confirmation import Choice, Consent
from artoo.contracts.settling import Review

ASK = "[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: "
ASK_PART = "[c]hoose, [k]eep for later, [d]iscard, [s]how again: "
SURE_TO_DISCARD = "Discard all changes of this task? They cannot be restored. [y]es, [N]o: "

_ALL = frozenset(("a", "all", "apply", "apply all", "全部", "应用", "全部应用"))
_CHOOSE = frozenset(("c", "choose", "挑选", "选择"))
_KEEP = frozenset(("", "k", "keep", "n", "no", "留", "保留", "留待以后", "否", "不"))
_DISCARD = frozenset(("d", "discard", "放弃"))
_AGAIN = frozenset(("s", "show", "show again", "看", "再看一遍"))


class ReviewPrompt:
    """The question about the changes of one task, with a keyboard and a screen."""

    def __init__(self, review: Review, language: str, screen: Screen, keyboard: Keyboard, here: Here) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._layout = Layout(review, language, here, screen.paint, screen.width)
        self._words = self._layout.words
        self.different = ""
        """The text in which the user has said what must be different. The changes stay pending then, and the text
        becomes the next request."""

    async def ask(self) -> Consent | Choice:
        """Ask what to do with the changes. An empty line, the end of input, or Ctrl-C keeps the changes for
        later."""
        in_sight = self._show()
        while True:
            # If a part of the review has scrolled off the screen, the dangerous changes are repeated close to the
            # prompt.
            if not in_sight:
                self._say_dangers()
            self._screen.say(self._words(ASK if self._layout.applicable else ASK_PART))
            said = await self._keyboard.read()
            decision = await self._decided(said) if said else Consent.KEEP
            if decision is not None:
                self._tell(decision, said)
                return decision
            in_sight = False

    def _show(self) -> bool:
        """Show the review. Returns True if all of it fits on the screen, so that nothing has scrolled off."""
        layout = self._layout
        whole = layout.whole()
        in_sight = self._screen.fits(whole)
        if in_sight:
            self._screen.show(whole)
        else:
            self._screen.show(layout.overview())
            if layout.has_diffs():
                self._screen.show(["", *layout.diffs()])
                self._screen.show(["", *layout.went_out()])
        # Keys that were pressed before the review was shown are not read as an answer.
        self._keyboard.forget()
        return in_sight

    def _say_dangers(self) -> None:
        """Print the dangerous changes once more, right above the prompt."""
        self._screen.show(self._layout.beside())

    async def _decided(self, said: str) -> Consent | Choice | None:
        """Return the decision that an answer means. Return None if the question must be asked again."""
        word = said.strip().casefold()
        if word in _KEEP:
            return Consent.KEEP
        if word in _ALL and self._layout.applicable:
            return Consent.ONCE
        if word in _DISCARD:
            return Consent.DISCARD if await self._sure(self._words(SURE_TO_DISCARD)) else None
        if word in _CHOOSE:
            return await self._choice()
        if word in _AGAIN:
            self._show()
        elif len(word.split()) > 1:  # a letter or a command consists of one word
            self.different = said.strip()
            return Consent.KEEP
        else:
            again = self._words(
                "Answer with one of the letters in brackets, or write what must be different; empty keeps it."
            )
            self._screen.say(f"{again}\n")
        return None

    async def _choice(self) -> Choice | None:
        """Ask which part of the changes to apply, and ask for a confirmation. Returns None if the first question is
        to be asked again."""
        listed = self._layout.applicable
        self._screen.show([self._layout.line(one, number) for number, one in enumerate(listed, start=1)])
        while True:
            self._screen.say(self._words("Which? Numbers (1 3-5), paths or directories; an empty line goes back: "))
            typed = (await self._keyboard.read()).strip()
            if not typed:
                return None
            paths, unknown = chosen(typed, listed, self._layout.here)
            for part in unknown:
                self._screen.say(f"{self._words('not in the list: {part}', part=part)}\n")
            if paths and not unknown:
                break
        taken = [one for one in listed if one.path in paths]
        lines = [self._words("Apply these {count}?", count=len(taken)), *(self._layout.line(one) for one in taken)]
        if len(listed) > len(taken):
            lines.append(self._words("The rest ({count}) stays pending.", count=len(listed) - len(taken)))
        self._screen.show(lines)
        return Choice(paths=paths) if await self._sure(self._words("[y]es, [N]o: ")) else None

    async def _sure(self, question: str) -> bool:
        self._screen.say(question)
        return is_yes(await self._keyboard.read())

    def _tell(self, decision: Consent | Choice, said: str) -> None:
        """Print the decision on a line of its own, below the review."""
        if isinstance(decision, Choice):
            line = self._words("approved: these {count}; the rest stays pending", count=len(decision.paths))
        else:
            line = {
                Consent.ONCE: self._words("approved: all of it"),
                Consent.DISCARD: self._words("discard it"),
            }.get(decision, self._words("keep it for later"))
        self._screen.say(("" if said.endswith("\n") else "\n") + line + "\n")
