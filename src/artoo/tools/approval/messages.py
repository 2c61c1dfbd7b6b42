"""The words of a question, in English and in Chinese. Reasons come from the rules, which speak English."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from artoo.contracts.settling import ClassifiedChange

_CHINESE: Mapping[str, str] = {
    "create": "新建",
    "edits": "修改",
    "delete": "删除",
    "mode": "更改权限",
    "link": "链接",
    "special": "特殊文件",
    "artoo's own files": "artoo 自己的文件",
    "the closed part of the home": "主目录中不开放的部分",
    "runs or configures programs later": "以后会运行或配置程序",
    "outside project and workspace": "位于项目和工作区之外",
    "is created": "将被创建",
    "what is there now is overwritten": "现有内容将被覆盖",
    "is deleted": "将被删除",
    "is moved to": "将被移动到",
    "mode, owner or attributes change": "权限、属主或属性将被更改",
    "what is there now is replaced by a link": "现有内容将被链接取代",
    "the directory is deleted and made again": "目录将被删除并重建",
    "what is there now is replaced by a special file": "现有内容将被特殊文件取代",
    "gives a program the rights of its owner": "使程序获得属主的权限",
    "a link out of project and workspace": "指向项目和工作区之外的链接",
    "a special file (pipe, socket or device)": "特殊文件（管道、套接字或设备）",
    "the repository is deleted": "仓库将被删除",
    "edit": "修改",
    "deletion": "删除",
    "elsewhere": "项目之外",
    "persistence": "启动或配置",
    "history": "历史",
    "silent": "无害",
    "conflict": "冲突",
    "went out": "已发送到外部",
    "it appeared since the task began": "任务开始后出现",
    "it was removed since the task began": "任务开始后被移除",
    "it was changed since the task began": "任务开始后被更改",
    "where it is moved to is in conflict": "它要移到的位置有冲突",
    "the directory that it belongs in is not there": "它所属的目录不存在",
    "it goes with what is in conflict in its repository": "它与其仓库中有冲突的内容密不可分",
    "it holds what is in conflict": "其中有内容存在冲突",
    "its mode, owner or attributes were changed since the task began": "任务开始后其权限、属主或属性被更改",
    "also": "此外",
    "tool": "工具",
    "the command failed, but changed this before": "命令失败，但此前已做出这些更改",
    "run it for real, without a sandbox": "在没有沙箱的情况下真正运行",
    "its changes cannot be listed beforehand, nor undone": "其更改无法事先列出，也无法撤销",
    "leave it running": "让它继续运行",
    "it runs with your rights, outside the workspace, until it is stopped (artoo stop)": (
        "它将以您的权限在工作区之外运行，直到被停止（artoo stop）"
    ),
    "do it again": "再做一次",
    "it was under way when artoo died; nobody knows whether it took effect": (
        "artoo 终止时它正在进行；是否已生效无人知晓"
    ),
    "first seen in": "首次出现于",
    "network": "网络",
    "credential": "凭据",
    "the command can read it and send it there": "命令可以读取它并发送到那里",
    "what it sends cannot be shown beforehand, nor taken back; hosts and bytes are logged": (
        "它发送的内容无法事先显示，也无法收回；主机和字节数会被记录"
    ),
    "bytes": "字节",
}


def word(text: str, language: str) -> str:
    """`text` in the language, as it is where there is no translation."""
    return _CHINESE.get(text, text) if language.startswith("zh") else text


def why(change: ClassifiedChange, language: str, shown: Callable[[str], str] = str) -> str:
    """Why a change needs consent; empty for a silent one. `shown` words the path that a file is moved to."""
    reason = word(change.reason, language)
    return reason if change.moved_to is None else f"{reason} {shown(change.moved_to)}"
