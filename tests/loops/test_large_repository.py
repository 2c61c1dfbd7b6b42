"""A repository of 2,000 files costs a prompt no more than a small one."""

from __future__ import annotations

from itertools import product

from scenario import Json, World, plan, read, says, shell, subtask

from artoo.contracts.events import ModelCalled
from artoo.llm.prompt import estimated_tokens

MOST_TOKENS = 6_000
PACKAGES, MODULES = 50, 40
LONG_LINES = 5_000


def module(package: int, number: int) -> str:
    """Lines that look like any others; one file in seven uses the function that is sought."""
    use = "from shop.prices import price_of_item\n\n\n" if (package * MODULES + number) % 7 == 0 else ""
    body = "\n".join(f"    value_{line} = {line * number}" for line in range(20))
    return f"{use}def work_{package}_{number}():\n{body}\n    return value_1\n"


def made(world: World) -> None:
    """The repository: 2,000 modules, and a long one in which the function is defined."""
    for package, number in product(range(PACKAGES), range(MODULES)):
        world.file(f"pkg_{package}/module_{number}.py", module(package, number))
    lines = [f"CONSTANT_{number} = {number}" for number in range(LONG_LINES)]
    lines[LONG_LINES // 2] = "def price_of_item(item): return item.price * 100"
    world.file("shop/prices.py", "\n".join(lines) + "\n")


def use(tool: str, main: str, **more: str) -> Json:
    """A step that calls a tool."""
    return {"tool": tool, "input": main, "more": more}


async def test_the_edit_loop_finds_by_search_and_keeps_its_prompts_small(world: World) -> None:
    """Search, a look at part of a long file, an edit, a test, an answer: no turn adds much, nothing is listed
    that is not needed, and the edit is there."""
    made(world)
    new = "def price_of_item(item): return item.price * 119"
    script = {
        "Plan": plan(subtask("let price_of_item count the tax of 19 %, and test it", tool="search_text")),
        "ExecutorStep": [
            use("search_text", "price_of_item"),
            use("search_text", "def price_of_item"),
            use("read_file", "shop/prices.py"),
            use("edit_file", "shop/prices.py", old="def price_of_item(item): return item.price * 100", new=new),
            shell("grep -c 'price \\* 119' shop/prices.py", final=False),
            says("price_of_item now counts 19 % of tax: 1 line of shop/prices.py.", 4, 5),
        ],
    }
    ended = await world.play("Let price_of_item count the tax of 19 %, and test it", script)
    assert len(ended.requests) == 7
    assert all(estimated_tokens(called.asked) <= MOST_TOKENS for called in ended.all(ModelCalled))
    first = ended.asked("ExecutorStep")[0].user
    assert sum(f"module_{number}.py" in first for number in range(MODULES)) < MODULES
    found = next(call for call in ended.calls if call.input == "def price_of_item")
    assert "shop/prices.py:2501" in found.output
    assert [path.rpartition("/shop/")[2] for call in ended.calls for path in call.changes] == ["prices.py"]


async def test_a_long_tree_is_not_sent_to_a_worker_that_knows_where_to_begin(world: World) -> None:
    """The planner has chosen the files from it, and its first calls read them."""
    for number in range(60):
        world.file(f"package/module_number_{number}.py", f"{number}\n")
    first = {"tool": "read_file", "arguments": {"path": "package/module_number_7.py"}}
    script = {
        "Plan": plan({**subtask("say what stands there"), "first_calls": [first]}),
        "ExecutorStep": says("7 stands there.", 1),
    }
    ended = await world.play("What stands in the seventh module?", script)
    assert "module_number_8.py" in ended.asked("Plan")[0].user
    assert "module_number_8.py" not in ended.asked("ExecutorStep")[0].user
    assert [call.output for call in ended.calls] == ["7\n"]


async def test_a_model_with_room_for_it_reads_a_file_in_one_look(world: World) -> None:
    """What is kept of a command's output is less than a file of some pages, and each further call is a step."""
    lines = "".join(f"{number} {'word ' * 10}\n" for number in range(1, 201))
    world.file("pages.txt", lines)
    script = {
        "Plan": plan(subtask("read pages.txt", tool="read_file")),
        "ExecutorStep": [read("pages.txt", final=False), says("It has 200 lines.", 1)],
    }
    ended = await world.play("Read pages.txt", script)
    assert len(lines) > 10_000 and lines.strip() in ended.asked("ExecutorStep")[1].user
    assert [call.output for call in ended.calls] == [lines]
