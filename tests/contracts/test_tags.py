from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from artoo.contracts.memory import Megram, MegramState
from artoo.contracts.tags import (
    TAG_LENGTH,
    Pair,
    doubt_pair,
    here,
    is_kind,
    is_wide,
    kind_of,
    kind_pair,
    macro_pair,
    micro_pair,
    pair_named,
    placed,
    slug,
    target_of,
    thing_pair,
    tool_of,
    tool_pair,
)
from artoo.memory import keys
from artoo.testing.clock import FakeClock

tags = st.text(max_size=400)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Find all PDF files on my disk", "find_all_pdf"),
        ("find   ALL, pdf!", "find_all_pdf"),
        ("查找所有PDF文件", "查找_所有_pdf"),
        ("查找 所有的文件", "查找_所有_的文"),
        ("整理Downloads文件夹", "整理_downloads_文件"),
        ("ｆｉｎｄ　ａｌｌ", "find_all"),
        ("a|b\n\0c", "a_b_c"),
        ("../../etc/passwd", "etc_passwd"),
        ("a" * 100 + " b", "a" * 32 + "_b"),
        ("!? b", "b"),
        ("", "none"),
        ("   \n", "none"),
    ],
)
def test_slugs(text: str, expected: str) -> None:
    """A slug is the first three words, in any script, however they are written."""
    assert slug(text) == expected


def test_wordless_texts_differ() -> None:
    """Texts without a word still get slugs of their own."""
    assert slug("!!!") != slug("???")
    assert slug("🙂") != "none"


@given(st.text(max_size=300))
def test_slugs_are_safe(text: str) -> None:
    """Whatever the text, its slug is short, not empty, and holds nothing that separates or commands."""
    made = slug(text)
    assert 0 < len(made) <= 98
    assert not any(character in made for character in "|/%:\\\n\0 ")
    assert made == slug(text)


def test_slugs_of_huge_texts_are_cheap() -> None:
    """Only the beginning of a text is read."""
    assert slug("word " * 10_000_000) == "word_word_word"


def test_pairs() -> None:
    """Macro, micro, tool, kind and thing pairs have the seed's form, and can be taken apart again."""
    assert macro_pair("Sort my mail") == ("intent:sort_my_mail", "env:local")
    assert micro_pair("shell:find", "/tmp/a b") == ("tool:shell:find", "path:/tmp/a b")
    assert tool_pair("glob") == ("tool:glob", "env:local")
    assert thing_pair("The Budget.xlsx") == ("thing:the_budget_xlsx", "env:local")
    assert thing_pair("The Budget.xlsx", "/home/x/shop") == ("thing:the_budget_xlsx@/home/x/shop", "env:local")
    assert tool_of(micro_pair("shell:find", "/tmp")) == "shell:find"
    assert target_of(micro_pair("shell:find", "/tmp")) == "/tmp"
    kind = kind_pair("glob", "Sort my mail")
    assert kind == ("tool:glob", "intent:sort_my_mail") == kind_of(tool_pair("glob"), macro_pair("Sort my mail"))
    assert is_kind(kind) and not is_wide(kind) and target_of(kind) is None
    assert is_wide(tool_pair("glob")) and not is_kind(tool_pair("glob"))
    assert not is_wide(macro_pair("x")) and not is_kind(macro_pair("x")) and not is_wide(micro_pair("a", "b"))
    assert tool_of(macro_pair("x")) is None
    assert target_of(tool_pair("x")) is None


def test_pairs_as_people_write_them() -> None:
    """Two tags, a tool or another space alone, and the words of a request each name their pair."""
    assert pair_named("tool:glob path:/tmp") == Pair("tool:glob", "path:/tmp")
    assert pair_named("tool:glob") == tool_pair("glob")
    assert pair_named("count the files") == macro_pair("count the files")


def test_endless_targets_stay_apart() -> None:
    """Targets beyond the limit are cut, and still differ when they differ."""
    one, other = micro_pair("shell:cat", "a" * 20_000), micro_pair("shell:cat", "a" * 19_999 + "b")
    assert len(one.entity) == TAG_LENGTH
    assert one != other


@given(tags, tags)
def test_escaping_is_injective(one: str, other: str) -> None:
    """Different tags have different key parts; none holds a separator or is long."""
    assert (keys.escape(one) == keys.escape(other)) == (one == other)
    assert b"|" not in keys.escape(one)
    assert len(keys.escape(one)) <= keys.LONGEST


@given(tags)
def test_short_tags_can_be_read_back(tag: str) -> None:
    """What is not stored as a digest is unescaped to the same tag."""
    part = keys.escape(tag)
    assert keys.unescape(part) in (tag, None)
    assert (keys.unescape(part) is None) == part.startswith(b"%#")


def test_a_target_is_kept_where_it_is() -> None:
    """A target has its project before it, once, and loses it there alone; what is the same everywhere stays."""
    pair = micro_pair("read_file", "a.txt")
    kept = placed(pair, "/home/ada/shop/")
    assert kept == micro_pair("read_file", "/home/ada/shop/a.txt") == placed(kept, "/elsewhere")
    assert here(kept, "/home/ada/shop") == pair
    assert here(kept, "/home/ada/shop2") is None and here(pair, "") == pair
    for same in (micro_pair("fetch", "https://x.org/a"), micro_pair("read_file", "~/a"), tool_pair("glob")):
        assert placed(same, "/p") == same
    assert here(tool_pair("glob"), "/p") == tool_pair("glob")
    command = micro_pair("shell:curl", "curl https://x.org")
    assert here(placed(command, "/p"), "/p") == command


def test_doubt_is_kept_by_intent() -> None:
    """Rounds of cell 6 share one space; the intent tells them apart, and no tool's pair can be meant."""
    assert doubt_pair("Sum the column") == doubt_pair("sum the  column") != doubt_pair("count the lines")
    assert tool_of(doubt_pair("sum the column")) is None


def test_hostile_ids_are_refused() -> None:
    """An id that could be taken for a key's separator is not a megram's id."""
    with pytest.raises(ValidationError):
        Megram(
            id="a|b",
            created_at=FakeClock().now(),
            space="s",
            entity="e",
            state=MegramState.ACCEPT,
            f=1,
            sigma=1,
            k=0,
        )
