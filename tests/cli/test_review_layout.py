"""A review as text: what is dangerous comes first and whole, and nothing can pose as something else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from review_cases import PROJECT, change, review

from artoo.cli.display.colors import Paint
from artoo.cli.display.line_wrap import rows_of
from artoo.cli.results.relative_paths import Here
from artoo.cli.review.layout import MOST_NAMED, ROWS_BESIDE, Layout
from artoo.cli.review.selection import chosen
from artoo.contracts.changes import ChangeKind
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Review, Rewritten, counts_of
from artoo.words.catalogue import ENGLISH, in_language
from artoo.words.settling import counted, waiting

HERE = Here("/home/me/project", "/home/me")


def layout(shown: Review, language: str = "en") -> Layout:
    """Without colours, 80 columns wide."""
    return Layout(shown, language, HERE, Paint(), 80)


def test_what_is_dangerous_is_named_first_and_never_folded() -> None:
    """Of 200 deletions every one is named, before edits, of which some are counted only."""
    deletions = [change(ChangeClass.DELETION, f"old/{number:03d}.txt") for number in range(200)]
    edits = [change(ChangeClass.EDIT, f"src/{number:03d}.py") for number in range(40)]
    shown = layout(review(*edits, *deletions))
    lines = shown.overview()
    assert lines[1].strip() == "200 deleted, 40 edited"
    named = [number for number, line in enumerate(lines) if "- deleted  old/" in line]
    assert len(named) == 200
    assert sum("~ edited" in line for line in lines) == MOST_NAMED
    assert any("and 28 more" in line for line in lines)
    assert min(number for number, line in enumerate(lines) if "~ edited" in line) > max(named)
    assert sum("- deleted" in line for line in shown.diffs()) == 200
    assert sum("src/" in line for line in shown.diffs()) == 40


def test_no_loss_is_hidden_by_others_beside_the_question() -> None:
    """Each dangerous class has its count and first paths there, however many others there are."""
    hooks = [change(ChangeClass.PERSISTENCE, f"hooks/{number:03d}") for number in range(300)]
    deep = [change(ChangeClass.HISTORY, f"{'d/' * 400}{number}") for number in range(3)]
    edits = [change(ChangeClass.EDIT, f"src/{number}") for number in range(300)]
    shown = layout(review(*edits, *deep, *hooks, change(ChangeClass.DELETION, "thesis.tex")))
    _, deleted, later, history = shown.beside()
    assert deleted == "  - 1 deleted  thesis.tex"
    assert later.startswith("  ! 300 runs later by itself  hooks/000, hooks/001, ")
    assert later.endswith("hooks/004, and 295 more")
    assert history.startswith("  ! 3 history rewritten  d/d/") and "d/0" in history
    assert rows_of(shown.beside(), 80) <= 1 + 3 * ROWS_BESIDE
    assert layout(review(*edits)).beside() == []


def test_no_name_and_no_line_can_command_the_terminal() -> None:
    """Escape sequences, newlines and marks of direction in paths, details and diffs are written out."""
    hostile = ClassifiedChange(
        path="/home/me/project/a\\x1b[2J.txt",
        change_class=ChangeClass.LINK,
        kind=ChangeKind.LINK,
        detail="-> b\x1b]0;x\x07\u202e",
        diff=("+a\x1b[31m\n? Apply",),
    )
    shown = layout(Review(task_id="t", changes=(hostile,), went_out=("host\x1b[2J\nx",)))
    for line in (*shown.overview(), *shown.diffs(), *shown.beside()):
        assert line.isprintable(), line


def test_a_conflict_shows_both_versions_and_is_not_among_what_a_yes_applies() -> None:
    """The path, the reason and the difference are shown; the choice does not hold it."""
    shown = layout(review(change(ChangeClass.EDIT, "b.txt"), conflicts={"a.txt": "it was changed since"}))
    overview = "\n".join(shown.overview())
    assert "In conflict, so not applied" in overview
    assert "a.txt: it was changed since" in overview
    assert [one.path for one in shown.applicable] == ["/home/me/project/b.txt"]
    assert shown.whole()[-3:] == ["      - your version, + the task's version", "      -mine", "      +its"]


@pytest.mark.parametrize(("language", "said"), [("en", "is moved to new/b.txt"), ("zh", "将被移动到 new/b.txt")])
def test_where_a_file_went_is_shown_from_where_the_person_stands(language: str, said: str) -> None:
    """The path in a reason is as short as the path of the line."""
    moved = change(ChangeClass.EDIT, "a.txt", reason="is moved to").model_copy(
        update={"moved_to": f"{PROJECT}/new/b.txt"}
    )
    (line,) = layout(review(moved), language).diffs()
    assert said in line
    assert "/home/me" not in line
    assert in_language(language)("moved") in line and in_language(language)("edited") not in line


def test_colours_stand_beside_words() -> None:
    """With colours the text is the same, and a deletion is red."""
    shown = review(change(ChangeClass.DELETION, "a"))
    coloured = Layout(shown, "en", HERE, Paint(colours=True), 80).overview()
    assert any("\x1b[1;31m- deleted\x1b[0m" in line for line in coloured)


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/home/me/project/src/a.py", "src/a.py"),
        ("/home/me/project", "."),
        ("/home/me/notes/n.md", "~/notes/n.md"),
        ("/etc/hosts", "/etc/hosts"),
        ("/home/me/project/~x", "./~x"),
        ("/home/me/project/-rf", "./-rf"),
        ("/home/me/project/.env", ".env"),
        ("/home/me/projects/a", "~/projects/a"),
        ("/home/me/project/a\\nb", "a\\nb"),
        ("/home/me/project/\\xff", "\\xff"),
    ],
)
def test_paths_are_short_and_lead_back(path: str, short: str) -> None:
    """From where the person stands or from the home; what is shown names the same path again."""
    assert HERE.short(path) == short
    assert HERE.named(short) == path


@pytest.mark.parametrize(
    ("typed", "paths", "unknown"),
    [
        ("1 3", ("a", "src/c"), ()),
        ("2-3", ("src/b c", "src/c"), ()),
        ("1,3", ("a", "src/c"), ()),
        ("src", ("src/b c", "src/c"), ()),
        ("'src/b c'", ("src/b c",), ()),
        ("~/project/a", ("a",), ()),
        ("4 0 2-9 nothing", (), ("4", "0", "2-9", "nothing")),
        ("'open", (), ("'open",)),
    ],
)
def test_a_part_is_named_by_numbers_paths_and_directories(
    typed: str, paths: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    """Numbers of the list, ranges, quoted paths, directories; what names nothing is said."""
    listed = [change(ChangeClass.EDIT, name) for name in ("a", "src/b c", "src/c")]
    found, wrong = chosen(typed, listed, HERE)
    assert found == tuple(f"/home/me/project/{path}" for path in paths)
    assert wrong == unknown


def test_a_file_that_is_called_like_a_number_is_a_file() -> None:
    """`2` is the path 2 when there is one."""
    listed = [change(ChangeClass.EDIT, name) for name in ("2", "a")]
    assert chosen("2", listed, HERE) == (("/home/me/project/2",), ())


def git(change_class: ChangeClass, inner: str, kind: ChangeKind, **more: object) -> ClassifiedChange:
    """A file in the project's repository."""
    one = change(change_class, f".git/{inner}")
    return one.model_copy(update={"kind": kind, "size_after": 41, **more})


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "+ git  .: the checked-out branch, the staged files, branch main, branch work (new), 2 new objects"),
        ("zh", "+ git  .: 当前检出的分支，暂存区，分支 main，分支 work（新建），2 个新对象"),
    ],
)
def test_what_is_harmless_in_a_repository_is_told_as_what_it_means(language: str, said: str) -> None:
    """One line a repository, and no file of git's among the person's new ones."""
    silent, new, over = ChangeClass.SILENT, ChangeKind.CREATED, ChangeKind.OVERWRITTEN
    shown = layout(
        review(
            change(silent, "new.txt"),
            git(silent, "HEAD", over),
            git(silent, "refs/heads/work", new),
            git(silent, "refs/heads/main", over),
            git(silent, "index", over),
            git(silent, "logs/HEAD", over),
            git(silent, "logs/refs/heads/work", new),
            git(silent, "objects/ab", new, size_after=None),
            git(silent, f"objects/ab/{'c' * 38}", new),
            git(silent, f"objects/ef/{'0' * 38}", new),
        ),
        language,
    )
    lines = [line.strip() for line in shown.overview()]
    assert sum(".git" in line for line in lines) == 0
    assert any(line.startswith(said) for line in lines), lines
    assert sum("new.txt" in line for line in lines) == 1
    assert sum(".git/" in line for line in shown.diffs()) == 6  # all but the objects, which are one line there too


def test_git_objects_outside_the_project_are_one_line_and_all_else_of_git_stays_apart() -> None:
    """A commit in a repository around the project: its objects are counted, the rest is named."""
    elsewhere, new, over = ChangeClass.ELSEWHERE, ChangeKind.CREATED, ChangeKind.OVERWRITTEN
    times = ChangeKind.METADATA
    changes = [
        git(elsewhere, "refs/heads/main", over),
        git(elsewhere, "objects/ab", new, size_after=None),
        git(elsewhere, f"objects/ab/{'c' * 38}", new),
        git(elsewhere, f"objects/ef/{'0' * 38}", new),
        git(elsewhere, "objects/ef/readme", new),
        git(ChangeClass.MODE, f"objects/01/{'2' * 38}", times, detail="time"),
        git(ChangeClass.MODE, f"objects/01/{'3' * 38}", times, detail="0o644 → 0o755"),
        git(ChangeClass.HISTORY, f"objects/77/{'7' * 38}", new, reason="is no object"),
    ]
    for shown in (layout(review(*changes)).diffs(), layout(review(*changes)).overview()):
        lines = [line.strip() for line in shown]
        assert "^ outside project and workspace  .: 2 new objects (commits and files)" in lines
        assert "% mode or owner  .: times of objects: 1" in lines
        assert sum(".git/" in line for line in lines) == 4  # a branch, no object, another mode, and what git denies
    whole = replace(layout(review(*changes)), unfolded=True).diffs()
    assert sum(".git/" in line for line in whole) == len(changes)


def test_rewritten_history_names_its_branch_and_stays_one_by_one() -> None:
    """The path is there, and what it is to git; nothing of it is folded."""
    lost = git(ChangeClass.HISTORY, "refs/heads/main", ChangeKind.OVERWRITTEN, reason="loses number 4")
    tag = git(ChangeClass.HISTORY, "refs/tags/v1", ChangeKind.DELETED, size_before=41, size_after=None)
    shown = layout(review(lost, tag))
    lines = [line.strip() for line in shown.overview()]
    assert "! history rewritten  .git/refs/heads/main (branch main; 41 B; loses number 4)" in lines
    assert "! history rewritten  .git/refs/tags/v1 (tag v1; 41 B)" in lines
    beside = "  ! 2 history rewritten  .git/refs/heads/main (branch main), .git/refs/tags/v1 (tag v1)"
    assert shown.beside()[1:] == [beside]


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "2 branches, 1 tag rewritten (11 commits)"), ("zh", "改写 2 个分支，1 个标签（11 个提交）")],
)
def test_rewritten_history_is_counted_by_its_names(language: str, said: str) -> None:
    """However many files of git a branch takes: a repository counts once, and several repositories together."""
    project = Rewritten(repository="/home/me/project/.git", branches=1, tags=1, commits=1)
    other = Rewritten(repository="/home/me/other/.git", branches=1, commits=10)
    lost = [
        git(ChangeClass.HISTORY, inner, ChangeKind.OVERWRITTEN).model_copy(update={"rewrites": rewrites})
        for inner, rewrites in (("logs/HEAD", project), ("refs/heads/a", project), ("refs/heads/b", other))
    ]
    shown = layout(review(*lost), language)
    assert shown.head()[1].strip() == said
    assert shown.beside()[1].strip().startswith(f"! {said}  .git/refs/heads/a (")
    assert said in waiting("", counts_of(tuple(lost)), 0, language)


def moved(name: str, to: str) -> tuple[ClassifiedChange, ClassifiedChange]:
    """Both ends of a file that only stands elsewhere."""
    gone = change(ChangeClass.EDIT, name, reason="is moved to")
    gone = gone.model_copy(update={"moved_to": f"{PROJECT}/{to}", "kind": ChangeKind.DELETED, "size_before": 5})
    return gone, change(ChangeClass.SILENT, to).model_copy(update={"size_after": 5})


@pytest.mark.parametrize(("language", "said"), [("en", "moved here"), ("zh", "移到此处")])
def test_a_file_that_is_moved_is_not_told_as_a_new_one(language: str, said: str) -> None:
    """The place where it arrives is named in the whole, and nothing is called new; the overview has it once."""
    shown = layout(review(*moved("a.txt", "b.txt")), language)
    assert any(said in line and "b.txt" in line and "a.txt" in line for line in shown.diffs())
    assert len(shown.overview()) == 3
    assert not any(in_language(language)("new") in line for line in shown.whole())


def test_what_is_counted_is_what_a_person_would_count() -> None:
    """Moves are no edits and no new files, a directory goes with the file in it, and git's files are not new."""
    counts = review(
        *moved("a.txt", "b.txt"),
        change(ChangeClass.EDIT, "c.txt"),
        change(ChangeClass.SILENT, "sub"),
        change(ChangeClass.SILENT, "sub/made.txt"),
        change(ChangeClass.SILENT, "empty"),
        change(ChangeClass.SILENT, ".git/objects/ab/cd"),
        git(ChangeClass.SILENT, "index", ChangeKind.OVERWRITTEN),
    ).counts
    assert counted(counts, ENGLISH) == "1 edited, 1 moved, 2 new, 2 harmless"
    assert counted(counts, in_language("zh")) == "1 修改，1 移动，2 新建，2 无害"
    assert [each.count for each in counts] == [2, 6]


def test_what_a_repository_loses_is_said_once() -> None:
    """One rebase changes many of git's files, each with the same reason: the first line has it, the others know."""
    lost = Rewritten(repository="/home/me/project/.git", branches=1, commits=2)
    files = [
        change(ChangeClass.HISTORY, f".git/{inner}").model_copy(update={"reason": "commits go", "rewrites": lost})
        for inner in ("HEAD", "logs/HEAD", "refs/heads/main")
    ]
    other = files[0].model_copy(update={"path": "/home/me/project/sub/.git/HEAD", "reason": "another"})
    shown = layout(review(*files, other))
    for lines in (shown.overview(), shown.diffs()):
        told = [line for line in lines if "! history" in line]
        assert [line.count("commits go") for line in told] == [1, 0, 0, 0]
        assert [line.count("as above") for line in told] == [0, 1, 1, 0]
