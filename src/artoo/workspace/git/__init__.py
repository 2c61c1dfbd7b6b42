"""Transfer a task's commits to the user's repository by git's own commands (docs/design/git.md)."""

from artoo.workspace.git.judge import acts, judge

__all__ = ["acts", "judge"]
