"""The one question of a task: its review, page by page, and then apply all, choose, keep or discard."""

from __future__ import annotations

from artoo.cli.conversation.yes_no import is_yes
from artoo.cli.display.keyboard import Keyboard
from artoo.cli.display.screen import Screen
from artoo.cli.results.relative_paths import Here
from artoo.cli.review.layout import Layout
from artoo.cli.review.pager import fits, page
from artoo.cli.review.selection import chosen
from artoo.contracts.confirmation import Choice, Consent
from artoo.contracts.settling import Review

ASK = "[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: "
ASK_PART = "[c]hoose, [k]eep for later, [d]iscard, [s]how again: "
SURE_TO_DISCARD = "Discard all that this task changed? What it made is gone then. [y]es, [N]o: "

_ALL = frozenset(("a", "all", "apply", "apply all", "全部", "应用", "全部应用"))
_CHOOSE = frozenset(("c", "choose", "挑选", "选择"))
_KEEP = frozenset(("", "k", "keep", "n", "no", "留", "保留", "留待以后", "否", "不"))
_DISCARD = frozenset(("d", "discard", "放弃"))
_AGAIN = frozenset(("s", "show", "show again", "看", "再看一遍"))


class Asking:
    """Lays one review before the person at `keyboard` and `screen`."""

    def __init__(self, review: Review, language: str, screen: Screen, keyboard: Keyboard, here: Here) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._layout = Layout(review, language, here, screen.paint, screen.width)
        self._words = self._layout.words

    async def ask(self) -> Consent | Choice:
        """The person's decision. The end of input, an empty line and Ctrl-C keep it for later: nothing is lost."""
        in_sight = await self._show()
        while True:
            if not in_sight:
                self._say_dangers()
            self._screen.say(self._words(ASK if self._layout.applicable else ASK_PART))
            said = await self._keyboard.read()
            decision = await self._decided(said) if said else Consent.KEEP
            if decision is not None:
                self._tell(decision, said)
                return decision
            in_sight = False

    async def _show(self) -> bool:
        """Shows the review. True when all of it stands on the screen, so that nothing has scrolled away."""
        layout = self._layout
        whole = layout.whole()
        in_sight = fits(whole, self._screen)
        if in_sight:
            await self._page(whole)
        else:
            await self._page(layout.overview())
            if layout.has_diffs():
                await self._page(["", *layout.diffs()])
                await self._page(["", *layout.went_out()])
        self._keyboard.forget()  # what was typed while it was shown was no answer to what comes
        return in_sight

    def _say_dangers(self) -> None:
        """What is lost or runs later, once more, right where the answer is given: however much stood above."""
        self._screen.say("".join(f"{line}\n" for line in self._layout.beside()))

    async def _decided(self, said: str) -> Consent | Choice | None:
        """What an answer decides; None when the question is to be put again."""
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
            await self._show()
        else:
            again = self._words("Answer with one of the letters in brackets; an empty line keeps it for later.")
            self._screen.say(f"{again}\n")
        return None

    async def _choice(self) -> Choice | None:
        """A part of it, named once more before it is applied. None: back to the question."""
        listed = self._layout.applicable
        await self._page([self._layout.line(one, number) for number, one in enumerate(listed, start=1)])
        while True:
            self._screen.say(self._words("Which? Numbers (1 3-5), paths or directories; an empty line goes back: "))
            typed = (await self._keyboard.read()).strip()
            if not typed:
                return None
            paths, unknown = chosen(typed, listed, self._layout.here)
            for part in unknown:
                self._screen.say(f"{self._words('not among them: {part}', part=part)}\n")
            if paths and not unknown:
                break
        taken = [one for one in listed if one.path in paths]
        lines = [self._words("Apply these {count}?", count=len(taken)), *(self._layout.line(one) for one in taken)]
        if len(listed) > len(taken):
            lines.append(self._words("The rest ({count}) waits for you.", count=len(listed) - len(taken)))
        await self._page(lines)
        return Choice(paths=paths) if await self._sure(self._words("[y]es, [N]o: ")) else None

    async def _sure(self, question: str) -> bool:
        self._screen.say(question)
        return is_yes(await self._keyboard.read())

    async def _page(self, lines: list[str]) -> None:
        await page(lines, self._screen, self._keyboard, self._words)

    def _tell(self, decision: Consent | Choice, said: str) -> None:
        """The decision on a line of its own: it stays on the screen, below what was decided about."""
        if isinstance(decision, Choice):
            line = self._words("yes: these {count}; the rest waits", count=len(decision.paths))
        else:
            line = {
                Consent.ONCE: self._words("yes: all of it"),
                Consent.DISCARD: self._words("discard it"),
            }.get(decision, self._words("keep it for later"))
        self._screen.say(("" if said.endswith("\n") else "\n") + line + "\n")
