"""Standing instructions of a project reach whoever does the work."""

from __future__ import annotations

from scenario import World, plan, shell, subtask


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
