"""Long texts in short places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.text import CUT, last_part, listed, set_off, shortened, without_middle

TEXTS = st.text(alphabet="ab \n字")


@given(TEXTS, st.integers(2, 40))
def test_a_text_is_cut_between_words(text: str, limit: int) -> None:
    """At most as long as there is room, each piece a whole word unless one word alone is too long."""
    for short, whole in ((shortened(text, limit), True), (last_part(text, limit), False)):
        assert len(short) <= limit
        if len(text) <= limit:
            assert short == text
            continue
        kept = short.removesuffix(CUT) if whole else short.removeprefix(CUT)
        assert text.startswith(kept) if whole else text.endswith(kept)
        if len(kept.split()) > 1:
            all_words, many = text.split(), len(kept.split())
            assert kept.split() == (all_words[:many] if whole else all_words[-many:])


def test_the_cut_is_seen() -> None:
    """The end, or the beginning, is a sign that something is missing."""
    assert shortened("rm: cannot remove it", 12) == "rm: cannot…"
    assert last_part("rm: cannot remove it", 12) == "…remove it"
    assert shortened("/a/long/path/without/spaces", 8) == "/a/long…"


@given(st.lists(st.text(alphabet="ab 字", max_size=60), max_size=60), st.integers(20, 900))
def test_the_middle_is_left_out_where_that_saves_something(lines: list[str], limit: int) -> None:
    """A text that is hardly too long stays whole; else both ends are as they were, and the rest is counted."""
    text = "\n".join(lines)
    short = without_middle(text, limit)
    if len(text) <= limit + 200:
        assert short == text
        return
    head, _, rest = short.partition("\n[… ")
    count, _, tail = rest.partition(" characters left out …]\n")
    assert text.startswith(head) and text.endswith(tail)
    assert len(head) + int(count) + len(tail) == len(text)
    assert len(head) + len(tail) <= limit


def test_the_middle_is_cut_between_lines() -> None:
    """Whole lines stand on both sides of the mark; one long line is cut where the room ends."""
    lines = [f"line {number} says something" for number in range(40)]
    head, _, tail = without_middle("\n".join(lines), 300).partition("[…")
    assert head.splitlines() == lines[: len(head.splitlines())]
    kept = tail.splitlines()[1:]
    assert kept == lines[-len(kept) :]
    assert without_middle("x" * 1_000, 300) == "x" * 150 + "\n[… 700 characters left out …]\n" + "x" * 150


def test_many_paths_are_told_by_their_directories() -> None:
    """As deep as there is room; a path that is alone in its directory is named, and no path is counted twice."""
    assert listed(["b", "a/c"]) == "b, a/c"
    packages = [f"env/lib/p{n % 2}/m{n}.py" for n in range(30)]
    assert listed(["a/c.py", *packages], 4) == "a/c.py, env/lib/p0/ (15 paths), env/lib/p1/ (15 paths)"
    assert listed(["a/c.py", "env", *packages], 4) == "a/c.py, env, env/lib/p0/ (15 paths), env/lib/p1/ (15 paths)"
    outside = ["/home/me/.rustup/a", "/home/me/.rustup/b"]
    assert listed([*packages, *outside], 4).endswith(", /home/me/.rustup/a, /home/me/.rustup/b")
    assert listed([f"f{n}" for n in range(9)] * 2, 3) == "f0, f1, f2, and 6 more"


@given(st.lists(st.text(alphabet="ab/", min_size=1), max_size=60), st.integers(1, 5))
def test_paths_that_are_listed_are_few(paths: list[str], most: int) -> None:
    """Whatever they are called."""
    assert listed(paths, most).count(", ") <= most


def test_what_is_set_off_has_no_line_without_a_blank() -> None:
    """Whatever ends its lines."""
    lines = set_off("call 2: shell\r\n\x0bx\u2028y\n\nz\n").splitlines()
    assert [line[:1] for line in lines] == [" "] * 6
    assert not set_off("")
