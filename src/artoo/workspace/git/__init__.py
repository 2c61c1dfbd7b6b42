"""A task's commits and refs in the user's repository, compared, judged and applied by git's own commands.

Reference: docs/design/git.md.
"""

from artoo.workspace.git.judge import acts, judge

__all__ = ["acts", "judge"]
