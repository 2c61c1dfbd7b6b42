"""What people call the things that code has names for."""

from __future__ import annotations

from typing import Final

from artoo.web.words.said import Named
from artoo.words import names

ROLES: Final = Named(names.ROLES)
DIRECTIVES: Final = Named(names.DIRECTIVES)
DECIDERS: Final = Named(names.DECIDERS)
DEEDS: Final = Named(
    {
        "user": ("asks", "提出请求"),
        "perceiver": ("understands", "理解"),
        "planner": ("plans", "规划"),
        "dispatcher": ("hands out", "分派"),
        "executor": ("does it", "执行"),
        "agent_validator": ("checks it", "检查"),
        "meta_validator": ("measures", "度量"),
        "solver": ("decides", "决定"),
    }
)
CONSENTS: Final = Named(
    {
        "once": ("yes", "同意"),
        "task": ("yes, for this task", "本任务内同意"),
        "no": ("no", "不同意"),
        "keep": ("kept for later", "留待以后"),
        "discard": ("discarded", "丢弃"),
    }
)
CLASSES: Final = Named(
    {
        "deletion": ("deletion", "删除"),
        "persistence": ("start-up, hook or editor file", "启动、钩子或编辑器文件"),
        "history": ("git history", "git 历史"),
        "special": ("special file", "特殊文件"),
        "elsewhere": ("outside the project", "项目之外"),
        "link": ("link", "链接"),
        "mode": ("mode", "权限"),
        "edit": ("edit", "修改"),
        "silent": ("new", "新建"),
    }
)
COUNTED: Final = Named({"moved": ("moved", "移动"), "harmless": ("harmless", "无害")})
"""What is counted of a class apart from its own."""
BOARD: Final = Named(
    {
        "pending": ("pending", "待办"),
        "in_progress": ("in progress", "进行中"),
        "blocked": ("blocked", "受阻"),
        "review": ("review", "待审"),
        "completed": ("completed", "已完成"),
        "failed": ("failed", "失败"),
        "rejected": ("rejected", "被驳回"),
        "cancelled": ("cancelled", "已取消"),
        "archived": ("archived", "已归档"),
    }
)
NATURES: Final = Named(
    {
        "violation": ("Violations: what must never happen", "违规：绝不该发生的"),
        "anomaly": ("Anomalies: what is unusual", "异常：不寻常的"),
        "drift": ("Drift: figures that left their own band", "漂移：离开自身常态的数值"),
        "loss": ("Losses: messages that somebody missed", "丢失：有人错过的消息"),
    }
)
ENDINGS: Final = Named(
    {
        "closed": ("in order", "正常"),
        "running": ("is being written", "正在写入"),
        "died": ("its process died", "进程已死"),
    }
)
ANCHORS: Final = Named(
    {
        "opened": ("has begun", "已开始"),
        "head": ("stood so", "到此为止"),
        "closed": ("closed in order", "正常关闭"),
        "died": ("its process died", "进程已死"),
        "retired": ("removed: old", "已清理"),
    }
)
ACTIONS: Final = Named(
    {
        "exploit": ("prefer", "优先"),
        "avoid": ("avoid", "避免"),
        "caution": ("be careful", "小心"),
        "ignore": ("no advice", "无建议"),
    }
)
PULSES: Final = Named(
    {
        "run": ("worked", "有工作"),
        "idle": ("nothing to do", "无事可做"),
        "skipped": ("skipped", "跳过"),
        "missed": ("missed", "错过"),
    }
)
