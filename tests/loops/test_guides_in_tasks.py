"""Standing instructions of a project reach whoever does the work."""

from __future__ import annotations

from scenario import World, judged, plan, shell, subtask


async def test_the_planner_and_each_step_have_the_closest_guide(world: World) -> None:
    """From the first step; after an edit in a place with its own guide, the next step has that one."""
    world.file("AGENTS.md", "Root rules.\n")
    world.file("pkg/AGENTS.md", "Package rules.\n")
    script = {
        "Plan": plan(subtask("make a module", tool="shell")),
        "ExecutorStep": [shell("echo x = 1 > pkg/module.py; echo made", final=False), shell("cat pkg/module.py")],
    }
    ended = await world.play("Make a module", script)
    [planner] = ended.asked("Plan")
    first, second = ended.asked("ExecutorStep")
    assert "Root rules." in planner.user
    assert "Root rules." in first.user
    assert "not by the person who asks" in first.user
    assert "Package rules." not in first.user
    assert "Package rules." in second.user


async def test_the_judge_has_the_guide_of_where_the_work_was_done(world: World) -> None:
    """Whoever judges a change knows the conventions of its place, and not only those of the root."""
    world.file("AGENTS.md", "Root rules.\n")
    world.file("pkg/AGENTS.md", "Package rules.\n")
    script = {
        "Plan": plan(subtask("make a module"), criteria=["It follows the conventions."]),
        "ExecutorStep": shell("echo x = 1 > pkg/module.py; echo made"),
        "ValidationReport": judged(("pass", "made")),
    }
    ended = await world.play("Make a module", script)
    [judge] = ended.asked("ValidationReport")
    assert "Package rules." in judge.user and "not by the person who asks" in judge.user
