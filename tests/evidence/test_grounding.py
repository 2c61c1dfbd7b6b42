"""Exact tokens of an answer stand in what was seen, by value, in any language; nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.evidence.grounding import named, own_words, seen_in, ungrounded
from artoo.evidence.shown_files import named_and_others
from artoo.evidence.tokens import paths_in, tokens_of


def call(output: str, put_in: str = "look", tool: str = "shell", **more: object) -> ToolCall:
    given: dict[str, object] = {"tool": tool, "identity": (tool,), "input": put_in, "output": output, **more}
    return ToolCall.model_validate({"exit_code": 0, **given})


def missing(answer: str, *outputs: str, request: str = "") -> list[str]:
    seen = seen_in([call(output) for output in outputs], [request])
    return [each.text for each in ungrounded(answer, seen)]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("notes.txt has 2 lines.", "2\n"),
        ("Total: 1,234.50 EUR", "1234.5"),
        ("Zusammen 1.234,50 Euro", "1234.5"),
        ("Au total 1\u202f234,5", "1234.50"),
        ("12,34,567 rupees", "1234567"),
        ("about 1,200", "1234"),
        ("3.14", "3.14159"),
        ("Python 3.11 is used", "Python 3.11.7"),
        ("Python 3.11 is used", "/usr/lib/python3.11/os.py"),
        ("Total 1,235", "1234.5"),
        ("25 %", "0.2512"),
        ("0.25", "25%"),
        ("8.4 million euros", "8,4 Millionen Euro"),
        ("8.4 million euros", "8400000"),
        ("\u7ea6\u6709 123 \u4e07\u7528\u6237", "1234567"),
        ("about 12 KB", "12288 f"),
        ("1.2 GB", "1.2G\tdata"),
        ("\u0664\u0662 \u0633\u0637\u0631", "42"),
        ("\uff14\uff12\u884c", "42"),
        ("on 2026-03-05", "March 5, 2026 and 3"),
        ("5 March 2026", "2026-03-05"),
        ("at 14:05", "14h05"),
        ("Python 3.12.4", "Python 3.12.4"),
        ("There are 3 files.", "a\nb\nc\n"),
        ("1. one\n2. two\n3. three", "x"),
        ("Found 3 flaws:\n- one\n- two\n- three", "x"),
        ("at 14:30", "2:30 pm"),
        ("5,010 in all, of 1,240 each at most", "a;1240\nb;1105\nc;1390\nd;1275"),
        ("| a | 458,900 |\n| b | 441,200 | 3.9 % less |", "458900\n441200"),
        ("1\u5104625\u4e07\u5186", "48200000\n36750000\n21300000"),
        ("\u0662\u0665\u066a", "0.25"),
        ("Two ways: `sorted(x)[:10]` or\n```python\nprint(99)\n```", "x"),
        ('It ends with "1 failed, 1 passed".', "x\n1 failed,  1 passed\n"),
        (
            "\u300c\u65b0\u7f51\u7ad9\u63a8\u8fdf\u300d",
            "\u516c\u544a\uff1a\u65b0\u7f51\u7ad9\u63a8\u8fdf\u4e0a\u7ebf",
        ),
        ("on 15 April 2026", "\u4e8c\u3007\u4e8c\u516d\u5e74\u56db\u6708\u5341\u4e94\u65e5"),
        ("350,000 yuan", "\u4e09\u5341\u4e94\u4e07\u5143"),
        ("see https://ex.org/a/.", "<https://ex.org/a>"),
        ("see https://ex.org/\u0664 and /srv/\u0664.txt", "https://ex.org/\u0664 /srv/\u0664.txt more"),
        ("invoice A-1042 of ann@ex.org", "A-1042;ann@ex.org"),
        ("commit 4f3a9c1", "4f3a9c1d22"),
        ("encoded as UTF-8, O(n log n), SHA-1", "x"),
        ("90.5 seconds", "real 1m30.5s"),
        ("more than 20 of them", "23"),
        ("2189 \u4e07", "\u4eba\u53e3\uff08\u4e07\uff09 2189"),
        ("6.4\u4e07", "64231.5"),
        ("64000", "6.4 \u4e07"),
        ("17 are gone, 8 are left", "25\n8"),
        ("3 at 4.50 make 13.50", "3 pieces, 4.50 each"),
        ("10 of 40 are 25 %", "py 10\nall 40"),
        ("240.00 on 2026-01-05, at least 19.90", "2026-01-01,19.90\n2026-01-05,240.00"),
        ("largest 240.00", "largest 2026-01-05 240.00"),
        ("12.75 and 4.50", "1,4.50,2\n2,12.75,1"),
        ("4.5 and 12.75", "[4.5,12.75]"),
        ("48.137, 11.575", "48.137,11.575"),
        ("350.2 ms", "run 1 350.2 ms"),
        ("123.4 MB", "pid 4312 123.4 MB"),
        ("800.25", ",".join(f"{number}00.25" for number in range(1, 9))),
        ("\u7ea6 840 \u4e07", "8,4 Mio."),
        ("12\u4ebf", "1.2 billion"),
        ("3\u4e071,300\u5186", "31300"),
        ("From 7.0 to 8.4, 20 % more", "8.4 now, 7.0 before"),
        ("12 of 15 pass (80 %)", "12 passed, 3 failed"),
        ("14.875: 12.5 and 19 %", "price 12.5, tax 19%"),
        ("6 \u00d7 12 + 24 = 96", "workers 6\npool 12\nother 24\nmost 60"),
        ("140 / (140 + 1124) = 11%", "slow 140\nquick 1124\nlost 7"),
        ("($3 + $4) \u00d7 2 = $14", "3\n4\n2\n9"),
        ("6 h \u00d7 3 + 2 h = 20 h", "6\n3\n2\n9"),
        ("2 x (3 + 4 + 5) = 24", "2\n3\n4\n5\n77"),
        ("1.532 \u00d7 6,00 + 45 \u00d7 2,50 = 9.192,00 + 112,50 = 9.304,50 EUR", "1532;6.00\n45;2.50"),
        ("(48.210 \u2212 36.900) / 36.900 = %30,7", "48.210\n36.900\n3"),
        ("%25", "0.2512"),
        ("3\n- 15 \u00d7 17 + 29 = 284", "3\n15\n17\n29\n11"),
        ("At 13: 15 \u00d7 17 + 29 = 284", "13\n15\n17\n29\n11"),
        ("233 days \u00d7 24 = 5,592 hours", "233\n9"),
        ("5,592 / 24 / 7 = 33.3 weeks", "5592\n9"),
        ("Am 14.02. und am 3.7.", "2026-02-14;x\n2025-07-03;y"),
        ("65 minutes, from 16:55 to 18:00", "in 16:55\nshut 18:00"),
        ("1 h 5 min, from 16:55 to 18:00", "in 16:55\nshut 18:00"),
        ("at 2:30 pm", "14:30"),
        ("90 minutes, or 1.5 hours", "5400 s"),
        ("17,988 bytes, about 17.6 KiB", "17988 bytes"),
        ("from 23:52:30 to 00:07:42, so 15 min 12 s", "23:52:30 down\n00:07:42 up"),
        (
            "On 3 May 2026 it was down at 4:50, 6:20 and 9:40. Requests (112, 98 and 141 ms) took 117 ms.",
            "2026-05-03 04:50\n06:20\n09:40\n112 ms\n98 ms\n141 ms\n7\n9",
        ),
        (
            "| a | 3,790.5\u4e07 | 58.1% |\n| b | 1,723\u4e07 | 26.4% |\n| c | 1,005\u4e07 | 15.4% |\n"
            "| all | 6,518.5\u4e07 | 100% |\n| before | 6,039.3\u4e07 |\n\n479.2\u4e07 more",
            "37905000\n17230000\n10050000\n65185000\n60393000\n1\n2\n3\n4",
        ),
        (
            "11,52 MB: 5,24 MB (45,5 %), 3,36 MB (29,1 %) and others",
            "5242880 a\n3355443 b\n1887436 c\n734003 d\n200000 e\n99999 f\n11519761 total\n1\n2",
        ),
        (
            "4,812 files, 61.3 GB: 18.2 GB, 9.7 GB, 7.4 GB, 3.1 GB and 2.9 GB make 41.3 GB or 67 %. "
            "Without 1,204 old ones, 12.4 GB, 48.9 GB stay.",
            "4812 files 61.3G\na 18.2G\nb 9.7G\nc 7.4G\nd 3.1G\ne 2.9G\nold 1204 12.4G",
        ),
        (
            "".join(f"- m{place}: {value} of 1000\n" for place, value in enumerate(("3.14", "7.5", "2.2", "9.07")))
            + "- all: 21.91\n- mean: 5.4775",
            "3.14 7.5 2.2 9.07 1000 12 13 14 15 16",
        ),
        (
            "| Region | 2023 | 2024 | Share |\n|---|---|---|---|\n| North | 48,200 | 53,900 | 60.8 % |\n"
            "| South | 36,750 | 31,200 | 35.2 % |\n| East | 2,400 | 3,485 | 3.9 % |\n"
            "| Total | 87,350 | 88,585 | 100 % |",
            "region,2023,2024\nNorth,48200,53900\nSouth,36750,31200\nEast,2400,3485",
        ),
        (
            "Sold 88,585 in all, 87,350 before.",
            "region,2023,2024\nNorth,48200,53900\nSouth,36750,31200\nEast,2400,3485",
        ),
        (
            "In all 2,745,139 bytes.\n- assets: 1,572,864 + 734,003 = 2,306,867 of 2,745,139 bytes = 84.0 %\n"
            "- cache: 262,144 + 98,304 = 360,448, 13.1 %\n",
            "1572864 video\n734003 photos\n262144 index\n98304 tmp\n53248 app\n20480 manual\n4096 readme",
        ),
        ("Together they take 21.280 s.", "a 14.507s\nb 5.002s\nc 1.284s\nd 0.487s"),
        ("1. from 09:14:10 to 09:41:55: 0:27:45\n2. 0:30:00, so 0:57:45", "09:14:10 down\n09:41:55 up\n0:30:00"),
    ],
)
def test_what_was_seen_may_be_said(answer: str, output: str) -> None:
    """Formatting, rounding, percent, scale, sizes, digits of any script, dates in ISO form, counts of lines."""
    assert missing(answer, output) == []


@pytest.mark.parametrize(
    ("answer", "command", "grounded"),
    [
        ("about 8 GB", "free -m", True),
        ("7982 MB", "free", True),
        ("about 8 GB", "free", False),
        ("8.2 MB", "du -sk /data", True),
        ("8 TB", "free -m", False),
    ],
)
def test_a_column_has_the_unit_that_its_command_names(answer: str, command: str, grounded: bool) -> None:
    """A bare number is a size of another scale only where the call says which unit it is in."""
    assert (ungrounded(answer, seen_in([call("Mem: 7982 3012", command)], ())) == ()) is grounded


@pytest.mark.parametrize(
    ("answer", "output", "named"),
    [
        ("notes.txt has 7 lines.", "2\n", "7"),
        ("It is 12 KB.", "12 bytes\n", "12 KB"),
        ("It is 2 MB.", "2048\n", "2 MB"),
        ("\u5171\u67097\u884c", "2\n", "7"),
        ("\u5171\u67091234\u884c", "1235\n", "1234"),
        ("BTC is 64 \u4e07", "64231.5", "64 \u4e07"),
        ("1.2 MB", "1.2G\tdata", "1.2 MB"),
        ("The result is 1.875.", "result: 0.1875", "1.875"),
        ("3.14159", "3.14", "3.14159"),
        ("On 2019-04-01", "hello", "2019"),
        ("It says \u201call tests have passed\u201d.", "2 failed", "all tests have passed"),
        ("see https://ex.org/b", "https://ex.org/a", "https://ex.org/b"),
        ("written to /srv/out/data.csv", "ok", "/srv/out/data.csv"),
        ("order B-20417", "A-1042", "B-20417"),
        ("\u0664\u0663", "42", "\u0664\u0663"),
        ("5,240.00", "2026-01-05,240.00", "5,240.00"),
        ("119.90", "1,19.90", "119.90"),
        ("351.2 ms", "run 1 350.2 ms", "351.2"),
        ("\u7ea6 850 \u4e07", "8,4 Mio.", "850 \u4e07"),
        ("3\u4e071,400\u5186", "31300", "3\u4e071,400"),
        ("85 minutes, from 16:55 to 18:00", "in 16:55\nshut 18:00", "85"),
        ("From 7.0 to 8.4, 30 % more", "8.4 now, 7.0 before", "30 %"),
        ("233 days, 24 of them wet", "233\n9", "24"),
        ("233 days \u00d7 24 = 5,593 hours", "233\n9", "5,593"),
        ("Am 14.03.", "2026-02-14;x\n2025-07-03;y", "14.03"),
        ("The mean is 20, the sum 100", "5 items", "100"),
        ("South sold 3,400, which is 35% more.", "north,1200\nsouth,3400", "35%"),
        ("5,110 in all", "a;1240\nb;1105\nc;1390\nd;1275", "5,110"),
        ("3 % of it", "a\nb\nc", "3 %"),
        ("6 \u00d7 12 + 24 = 97", "workers 6\npool 12\nother 24\nmost 60", "97"),
        ("140 / (140 + 1124) = 47%", "slow 140\nquick 1124\nlost 7", "47%"),
        ("61 \u00d7 2 \u2212 3 = 119", "2\n3\n4\n5", "119"),
        ("22 \u00d7 261 = 5742", "22\n3\n4", "5742"),
        ("(6 \u00d7 (12 + 24 = 216", "6\n12\n24\n60", "216"),
        ("6 / (12 \u2212 12) = 5.5", "6\n12\n24\n60", "5.5"),
        ("%26", "0.2512", "%26"),
        ("6 " + "+ " * 40_000 + "12 = 19", "6\n12\n24\n60", "19"),
        ("6 +" + " " * 50_000 + "12 = 19", "6\n12\n24\n60", "19"),
        ("6 + " + "(" * 39 + "12 = 19", "6\n12\n24\n60", "19"),
        ("between 9:05 and 9:45", "9:05 9:40", "9:45"),
        ("17,988 bytes, about 17.7 KiB", "17988 bytes", "17.7 KiB"),
        ("from 23:52:30 to 00:07:42, so 25 min", "23:52:30 down\n00:07:42 up", "25"),
        (
            "| a | 3,790.5\u4e07 | 58.1% |\n| b | 1,723\u4e07 | 27.4% |\n| c | 1,005\u4e07 | 15.4% |\n"
            "| all | 6,518.5\u4e07 | 100% |",
            "37905000\n17230000\n10050000\n65185000\n60393000\n1\n2\n3\n4",
            "27.4%",
        ),
    ],
)
def test_what_stands_nowhere_is_named(answer: str, output: str, named: str) -> None:
    """The token itself, not the sentence."""
    assert named in missing(answer, output)


@pytest.mark.parametrize(
    ("path", "stands"),
    [
        ("/mnt/usb/backup-DATE", True),
        ("/mnt/usb/backup-2026-11-27", True),
        ("logs/run-7.txt", True),
        ("/mnt/usb/photos", False),
        ("/mnt/usb/backup-x/y", False),
        ("/mnt/usb/backups-1", False),
        ("/srv/data/a.csv", False),
    ],
)
def test_a_path_of_an_output_may_be_said_with_its_variable_part(path: str, stands: bool) -> None:
    """Only within its last part, only where that begins as it is put out, and never by what a call was given."""
    output = "DST=/mnt/usb/backup-$(date +%F)\nls /srv/data/*\nopen(f'logs/run-{number}.txt')\n"
    assert (missing(f"It goes to {path} then.", output) == []) is stands
    assert ungrounded("see /tmp/x-12", seen_in([call("ok", "ls /tmp/x-*")], ())) != ()


def test_a_mail_address_names_no_file() -> None:
    """A picture for screens of twice the density is a file all the same."""
    assert [*paths_in("to ann@ex.org, ann@163.com. See icon@2x.png and a/b@c.txt")] == ["icon@2x.png", "a/b@c.txt"]
    assert missing("Mail ann@ex.com", "ann@ex.org") == ["ann@ex.com"]


def test_a_name_with_several_dots_is_one_path() -> None:
    """Not one that ends at its first dot."""
    assert [*paths_in("made out/data.tar.gz and web/app.min.js.")] == ["out/data.tar.gz", "web/app.min.js"]


@pytest.mark.parametrize("answer", ["n" + "9" * 5_000, "1." + "9" * 5_000 + ".3"])
def test_thousands_of_digits_are_compared_too(answer: str) -> None:
    """Python makes no number of so many: they are compared as they are written."""
    assert missing(answer, "1 2 3") != []
    assert missing(answer, answer) == []


def test_the_elements_of_a_printed_list_are_counted() -> None:
    """The list is one record's and code counts it: another figure stays refused."""
    orders = f"unknown {[(str(number), 'C007') for number in range(20, 36)]}\n"
    assert missing("16 orders", orders) == []
    assert missing("17 orders", orders) == ["17"]


def test_the_request_and_a_change_ground_too() -> None:
    """What the person said, and what was written into a file, need no output."""
    assert missing("The 40 rows", "", request="Keep the first 40 rows") == []
    written = call("", put_in="price = 1399", changes=("/p/a.py",))
    assert ungrounded("The price is 1399.", seen_in([written], ())) == ()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("19 and 20", "19; 20"),
        ("21, 22 and 23; 24", "21; 22; 23; 24"),
        ("; ".join(map(str, range(31, 45))), "; ".join([*map(str, range(31, 43)), "… (+2)"])),
    ],
)
def test_a_correction_names_the_first_and_counts_the_rest(answer: str, told: str) -> None:
    """Whoever mends only what is named knows that this is not all."""
    assert named(ungrounded(answer, seen_in([call("pears 7\n")], ()))) == told


@pytest.mark.parametrize(
    ("put_in", "output", "tool", "own"),
    [
        ("echo 'All 12 tests passed'", "All 12 tests passed\n", "shell", True),
        ("cat <<END\nnotes.txt has 7 lines\nEND", "notes.txt has 7 lines\n", "shell", True),
        ("echo 7", "7\n", "shell", True),
        ("notes", "notes\n", "read_file", False),
        ("print(6 * 7)", "42\n", "python", False),
        ("head -1 a.txt", "1\n", "shell", False),
        ("wc -l < notes.txt", "2\n", "shell", False),
    ],
)
def test_a_call_that_prints_its_own_input_shows_nothing(put_in: str, output: str, tool: str, own: bool) -> None:
    """Every word of the output stands in the input, and it is not one word that a search may have found."""
    assert own_words(call(output, put_in, tool)) is own


@pytest.mark.parametrize("output", ["7\n", "notes.txt has 7 lines\n"])
def test_what_could_see_nothing_else_shows_nothing(output: str) -> None:
    """One word that a program prints of its own was found nowhere; what it computed stands."""
    program = "n = 7\nprint('notes.txt has', n, 'lines') if n > 9 else print(n)"
    assert own_words(call(output, program, "python", self_contained=True))
    assert not own_words(call("49\n", program, "python", self_contained=True))


def test_a_failed_call_is_no_echo() -> None:
    """What a failing program says of its input is the program's word."""
    assert not own_words(call("cat gone.txt", "cat gone.txt", status=CallStatus.ERROR))
    assert not own_words(call("done v1", "git tag v1 && echo done v1", bookkeeping=True))


@given(st.integers(min_value=0, max_value=10**12), st.sampled_from((",", ".", "'", "\u202f", "_")))
@settings(deadline=None, max_examples=100)
def test_a_number_is_itself_in_every_grouping(value: int, separator: str) -> None:
    """Whatever stands between the thousands, the value is found."""
    assert missing(f"x {value:,} x".replace(",", separator), f"{value}") == []


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=150)
def test_a_text_is_grounded_in_itself(text: str) -> None:
    """Nothing that was put out word for word is ever called ungrounded."""
    seen = seen_in([call(f"{text}", put_in="")], ())
    assert [each.text for each in ungrounded(text, seen) if each.kind != "quote"] == []


def test_short_quotations_do_not_turn_the_text_between_them_into_one() -> None:
    """Marks that open and close alike are paired from the left, whatever the length of what they hold."""
    text = 'conf.json has "limits": null, so the program evaluates None and stops at "daily" at once.'
    assert not [token for token in tokens_of(text) if token.kind == "quote"]
    assert [
        token.text for token in tokens_of('it says "a whole sentence" and no more') if token.kind == "quote"
    ] == ["a whole sentence"]
    assert not [token for token in tokens_of('a 5" pipe that is "very long" indeed') if token.kind == "quote"]


def test_rows_of_what_was_made_can_be_counted() -> None:
    """Lines of one form are rows, in an output as in what was changed; other counts stand nowhere."""
    page = "".join(
        f"+<tr><td>{city}</td><td>{degrees}</td></tr>\n"
        for city, degrees in (("Pune", "31"), ("New York", "12.5"), ("Oslo", "4"), ("Riga", "-2"), ("Lima", "19"))
    )
    around = f"+<table>\n+<tr><th>City</th><th>Degrees</th></tr>\n{page}+</table>\n+some words\n+other words\n"
    made = seen_in([call("created")], ["Tell how many rows the table has"]).wider(around, "")
    assert not ungrounded("The table has 5 rows.", made)
    assert [each.text for each in ungrounded("The table has 7 rows.", made)] == ["7"]
    assert missing("It has 5 rows.", around) == []
    plain = "one line\nand more words\nof plain text\nwithout any form\n\nlast\nline"
    assert missing("It has 4 rows.", plain) == ["4"]


def test_the_bytes_that_a_call_gave_ground_a_size_and_no_other_scale() -> None:
    """A file of 12 bytes that was read is 12 bytes large, and not 12 KB."""
    seen = seen_in([call("hello\nworld\n", "notes.txt", "read_file", total_bytes=12)], ["How large is notes.txt?"])
    assert not ungrounded("notes.txt is 12 bytes large.", seen)
    assert [each.text for each in ungrounded("notes.txt is 12 KB large.", seen)] == ["12 KB"]


HEADS = """All of a.csv (columns: x, y):
x,y
1,2
All of b.csv:
3,4
First lines of sub/LICENSE:
99 years of copyright
b.bin: is binary, not text"""


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("There are 99.", ["99"]),
        ("By LICENSE it is 99 years.", []),
        ("LICENSE.md says 99.", ["99"]),
        ("sub/LICENSE说99", []),
        ("a.csv has 4.", ["4"]),
        ("./b.csv has 4.", []),
        ('It says "years of copyright".', []),
    ],
)
def test_figures_of_shown_files_stand_only_where_a_file_is_named(answer: str, missing: list[str]) -> None:
    """By its name, with its folder or without; quotations stand in any case."""
    heads, unnamed = named_and_others(HEADS, [answer])
    assert [token.text for token in ungrounded(answer, seen_in((), [heads], unnamed))] == missing


def test_a_file_that_a_call_read_is_named_by_it() -> None:
    """Not so by a call that prints only its own words."""
    read, said = (
        call("ok", tool="read_file", target="/p/sub/LICENSE"),
        call("LICENSE is", "echo LICENSE is", target="LICENSE"),
    )
    assert [("99" in named_and_others(HEADS, [], [each])[0]) for each in (read, said)] == [True, False]
