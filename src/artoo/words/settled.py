"""What became of a task's changes after it, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SettledWords:
    """The sentences of one language. `when`: a moment, or `at_its_end`; `what`: counts or paths."""

    at_its_end: str
    waits: str
    waited: str
    applied: str
    discarded: str
    expired: str
    undone: str
    left: str
    gits: str


ENGLISH: Final = SettledWords(
    at_its_end="when it ended",
    waits="Waits for your yes since {when}, until {until}: {what}",
    waited="Waited for a yes when it ended: {what}",
    applied="Applied {when}: {what}",
    discarded="Discarded {when}",
    expired="Dropped {when}: it had waited too long",
    undone="Put back {when}: {what}",
    left="{count} left, changed since",
    gits="git's own files ({count})",
)

CHINESE: Final = SettledWords(
    at_its_end="任务结束时",
    waits="自 {when} 起等待您同意，保留至 {until}：{what}",
    waited="任务结束时等待同意：{what}",
    applied="{when}已应用：{what}",
    discarded="{when}已放弃",
    expired="{when}已丢弃：等待时间过长",
    undone="{when}已撤销：{what}",
    left="{count} 项此后有改动，未撤销",
    gits="git 自己的文件（{count}）",
)


def settled_words(language: str) -> SettledWords:
    """The sentences for a BCP 47 tag; English where there is no translation."""
    return CHINESE if language.lower().startswith("zh") else ENGLISH
