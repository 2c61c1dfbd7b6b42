"""Requests in Chinese and in mixed text: named, planned, checked, shown and answered in the person's language."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from scenario import (
    ANY_ANSWER,
    World,
    gives_up,
    judged,
    matches,
    moves,
    plan,
    python,
    read,
    says,
    shell,
    subtask,
    write,
)

from artoo import Artoo
from artoo.contracts.plan import Plan
from artoo.contracts.request import TaskSpec, Turn
from artoo.llm.embedded.store import QWEN_CODER, ModelStore
from artoo.testing.replies import Scripted


@dataclass(frozen=True)
class Asked:
    """A request with what must follow from it: its name, and the delivered answer."""

    request: str
    name: str
    steps: tuple[Scripted, ...]
    answer: str
    language: str = "zh"


REQUESTS = [
    Asked("数据.txt 有多少行？", "数据_txt_有多", (shell("wc -l < 数据.txt"),), "3"),
    Asked(
        "统计 data.csv 的行数，保留 2 位小数给出平均值",
        "统计_data_csv",
        (python("rows = [int(n) for n in open('data.csv')]\nprint(f'平均值 {sum(rows) / len(rows):.2f}')"),),
        "平均值 2.50",
    ),
    Asked(
        "把 hello 写到 out.txt",
        "把_hello_写到",
        (write("out.txt", "hello\n"),),
        "created out.txt (6 bytes, lines: 1)",
    ),
    Asked("数据.txt 里写了什么", "数据_txt_里写", (read("数据.txt"),), "甲\n乙\n丙"),
    Asked("Count the lines of 数据.txt", "count_the_lines", (shell("wc -l 数据.txt"),), "3 数据.txt", "en"),
    Asked(
        "帮我看看 src/main.py 里面有几个 function",
        "帮我_看看_src",
        (shell("grep -c '^def' src/main.py", final=False), says("src/main.py 里有 2 个函数。")),
        "src/main.py 里有 2 个函数。",
    ),
]


def files(world: World) -> None:
    world.file("数据.txt", "甲\n乙\n丙\n")
    world.file("data.csv", "1\n2\n3\n4\n")
    world.file("main.py", "# TODO\n")
    world.file("src/main.py", "def a(): ...\ndef b(): ...\n")


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda asked: asked.name)
async def test_a_request_in_chinese_or_mixed(world: World, asked: Asked) -> None:
    """It has a name and a language, nothing is demanded by code, and the answer is delivered as it is."""
    files(world)
    script = {"Plan": plan(subtask("照着要求去做这件事", tool=None)), "ExecutorStep": list(asked.steps)}
    ended = await world.play(asked.request, script)
    spec = ended.one(TaskSpec)
    assert (spec.task_id, spec.language) == (asked.name, asked.language)
    assert [criterion.text for criterion in ended.one(Plan).task_criteria] == [ANY_ANSWER]
    assert (ended.directive, ended.result.output) == ("accept", asked.answer)
    assert "in the language of the request" in ended.asked("Plan")[0].user


async def test_a_failure_is_told_in_chinese(world: World) -> None:
    """Why it stopped, what is unmet, what was tried and what comes next in Chinese; a tool's words as they are."""
    script = {
        "Plan": plan(subtask("看一看这个文件", matches("好"), tool="shell")),
        "ExecutorStep": [read("没有.txt", final=False), gives_up("没有.txt 不存在")],
        "ValidationReport": judged(("fail", "")),
        "FailureReport": moves("告诉我文件在哪里"),
    }
    config = world.config(control={"max_retries": 0, "theta": 0.0})
    ended = await world.play("没有.txt 里写了什么？", script, config=config)
    assert ended.told == (
        "任务未能完成：轮次和时间预算即将用尽。\n未满足：the output matches 好（没有.txt 不存在）\n"
        "尝试过：read_file: 没有.txt → "
        "there is no 没有.txt; nothing with a similar name is in the project\n您可以：\n- 告诉我文件在哪里"
    )


async def test_a_correction_in_chinese_is_recognised(world: World) -> None:
    """That 「错了」 is about the last result is said by R1's model, which is asked because there is one."""
    files(world)
    script = {
        "TaskSpec": {"intent": "数据.txt 有多少行？", "corrects": True},
        "Plan": plan(subtask("再数一遍这个文件", tool="shell")),
        "ExecutorStep": shell("wc -l < 数据.txt"),
    }
    history = (Turn(input="数据.txt 有多少行？", summary="2"),)
    ended = await world.play("错了，再数一遍", script, history=history)
    spec = ended.one(TaskSpec)
    assert spec.corrects and spec.language == "zh" and spec.intent == "数据.txt 有多少行？"


_GIVEN = os.environ.get("ARTOO_TEST_MODEL")
MODEL = Path(_GIVEN) if _GIVEN else ModelStore(Path.home() / ".artoo").path_of(QWEN_CODER)


@pytest.mark.embedded
@pytest.mark.skipif(not MODEL.is_file(), reason="no model on disk: set ARTOO_TEST_MODEL, or run `artoo model pull`")
async def test_a_chinese_request_on_the_embedded_model(world: World) -> None:
    """The real local model counts the lines of a file that a Chinese request names, and the figure is right."""
    files(world)
    config = world.config(embedded={"model": str(MODEL)})
    async with Artoo(config, environ={}) as artoo:
        result = await artoo.run("用 Python 数一数 data.csv 有多少行，只输出数字", options=world.options())
    assert result.directive.value in ("accept", "success"), (
        result
    )  # success: nothing has confirmed it, and it says so
    assert "4" in result.output, result
