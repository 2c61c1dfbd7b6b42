"""What is said about a settled difference, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.changes import Conflict
from artoo.contracts.settling import ChangeClass, ClassCount

_NAMES: dict[ChangeClass, tuple[str, str, str]] = {
    ChangeClass.DELETION: ("deletion", "deletions", "处删除"),
    ChangeClass.PERSISTENCE: (
        "start-up or configuration file",
        "start-up or configuration files",
        "个启动或配置文件",
    ),
    ChangeClass.HISTORY: ("change of history", "changes of history", "处历史改写"),
    ChangeClass.SPECIAL: ("special file", "special files", "个特殊文件"),
    ChangeClass.ELSEWHERE: ("file elsewhere", "files elsewhere", "个项目之外的文件"),
    ChangeClass.LINK: ("link", "links", "个链接"),
    ChangeClass.MODE: ("change of mode", "changes of mode", "处权限更改"),
    ChangeClass.EDIT: ("edit", "edits", "处修改"),
    ChangeClass.SILENT: ("harmless change", "harmless changes", "处无害更改"),
}

_MOVES = ("move", "moves", "处移动")


def counted(counts: Sequence[ClassCount], language: str) -> str:
    """`2 deletions, 1 edit`."""
    chinese = language.startswith("zh")
    parts = (part for each in counts for part in _parts(each, language, chinese=chinese))
    return ("、" if chinese else ", ").join(parts)


def _parts(count: ClassCount, language: str, *, chinese: bool) -> tuple[str, ...]:
    """What is moved is no edit; what is silent is counted as one, for it needs no yes."""
    if told := rewritten(count, language):
        return (told,)
    named = ((count.count - count.moved, _NAMES[count.change_class]), (count.moved, _MOVES))
    return tuple(f"{some} {names[2 if chinese else some != 1]}" for some, names in named if some)


def rewritten(count: ClassCount, language: str) -> str:
    """`2 branches, 1 tag rewritten (11 commits)`; empty where git names neither: the files are counted then."""
    chinese = language.lower().startswith("zh")
    named = ((count.branches, "branch", "branches", "个分支"), (count.tags, "tag", "tags", "个标签"))
    parts = [f"{some:,} {(one, many)[some != 1]}" for some, one, many, _ in named if some]
    if not parts:
        return ""
    commits = count.commits
    if chinese:
        lost = f"（{commits:,} 个提交）" if commits else ""
        return f"改写 {'、'.join(f'{some:,} {word}' for some, *_, word in named if some)}{lost}"
    lost = f" ({commits:,} commit{'s' * (commits != 1)})" if commits else ""
    return f"{', '.join(parts)} rewritten{lost}"


def title(what: str, language: str, *, unfinished: bool) -> str:
    """The question in one line."""
    if language.startswith("zh"):
        return f"{'任务未完成；' if unfinished else ''}是否应用任务的更改：{what}"
    return f"{'the task was not finished; ' if unfinished else ''}apply what the task changed: {what}"


def why_it_waits(conflicts: Sequence[Conflict], language: str, *others: str) -> str:
    """What there is to say beside the consent that it needs, and nothing of how that is given: whoever shows it
    knows what can be typed or called there. Empty where it only waits for consent."""
    return joined(*others, met(conflicts, language) if conflicts else "")


def waiting(reason: str, counts: Sequence[ClassCount], conflicts: int, language: str) -> str:
    """All of it in one sentence, for who is shown no list: the reason, and what consent is needed for.

    Where nothing but conflicts is left, what is there now stays, whatever is said.
    """
    loud = [each for each in counts if each.change_class is not ChangeClass.SILENT] or list(counts)
    what, chinese = counted(loud, language), language.startswith("zh")
    if what:
        return joined(reason, f"等待你的同意：{what}" if chinese else f"waits for your consent: {what}")
    return joined(reason, ("现有版本保留" if chinese else "what is there now stays") if conflicts else "")


def dropped(language: str) -> str:
    """Say that the changes of which an answer speaks were discarded."""
    if language.startswith("zh"):
        return "更改已被放弃，没有任何更改生效"
    return "the changes were discarded; none of them took effect"


def not_yet(waits: str, language: str) -> str:
    """What is said below an answer whose changes are pending: it may speak of them as done. `waits`: `waiting`."""
    return f"尚未生效：{waits}" if language.startswith("zh") else f"Not done yet: {waits}"


def unfinished(language: str) -> str:
    """Why what could have been applied unasked was not."""
    return "任务未完成，其更改未被应用" if language.startswith("zh") else "the task was not finished"


def kept_in_memory(language: str) -> str:
    """What waits, and does not outlive the machine's next start."""
    if language.startswith("zh"):
        return "artoo 的主目录（ARTOO_HOME）在内存中：重启后等待同意的更改会丢失"
    return "artoo's home (ARTOO_HOME) is in memory: what waits there is lost at a reboot"


def rest_by_hand(language: str) -> str:
    """Of what was applied only a part is told: what became of the rest after that."""
    if language.startswith("zh"):
        return "其余更改在任务中断期间已由你处理"
    return "you settled the rest while the task was cut off"


def met(conflicts: Sequence[Conflict], language: str) -> str:
    """What stands in the way."""
    shown = ", ".join(f"{one.path} ({one.reason})" for one in conflicts[:5])
    more = len(conflicts) - 5
    if language.startswith("zh"):
        return f"冲突：{shown}{f'，另有 {more} 处' if more > 0 else ''}"
    return f"in conflict with what is there now: {shown}{f' and {more} more' if more > 0 else ''}"


def joined(*parts: str) -> str:
    """Sentences that are there, one after the other."""
    return "; ".join(part for part in parts if part)
