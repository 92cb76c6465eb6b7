"""`make lint` finds private words and long lines in documents and code.

It also finds broken links, missing files, and names of tests that do not say the behaviour.
"""

import subprocess
import sys

import pytest

from lint_docs import ROOT, UNCHECKED, code_faults, faults, long_prose, main, name_faults, sources
from wrap_docs import with_wrapped_comments, wrapped


@pytest.fixture
def page(tmp_path):
    (tmp_path / "other.md").write_text("# Other page\n\n## `One` more, head\n")

    def write(text):
        path = tmp_path / "page.md"
        path.write_text(text)
        return [fault.removeprefix(f"{path}:") for fault in faults(path)]

    return write


def test_the_documents_have_no_fault():
    assert main() == 0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("A queue of one product.", "1: 'product'; write: BDP; or Headway, if you mean the program"),
        ("fine\n\nIt is lost by chance.", "3: 'by chance'; write: at random, random"),
        ("It is lost by\nchance.", "1: 'by chance'; write: at random, random"),
        ("<!-- Written by `make docs`. -->\nIt is lost by chance.", "2: 'by chance'; write: at random, random"),
        ("# Page\n\nWritten by `make docs`.\n\nby chance\n", "5: 'by chance'; write: at random, random"),
        (
            f"<!-- Written by `make docs`. -->\n{'word ' * 21}",
            "2: 105 columns; wrap it at 100: scripts/wrap_docs.py",
        ),
        (
            "It has a flow beside another.",
            "1: 'beside'; write: against, with, compared with; next to",
        ),
        ("The least RTT is 3 ms.", "1: 'least RTT'; write: minimum RTT, minimum delay"),
        ("| its deviation |", "1: 'deviation'; write: standard deviation; or departure, difference"),
        ("word " * 21, "1: 105 columns; wrap it at 100: scripts/wrap_docs.py"),
        ("[there](nowhere.md)", "1: the link nowhere.md leads nowhere"),
        ("[there](other.md#one-less)", "1: the link other.md#one-less leads nowhere"),
        ("[here](#head)", "1: the link #head leads nowhere"),
        ("See `crates/cc/src/nowhere.rs`.", "1: there is no crates/cc/src/nowhere.rs"),
    ],
)
def test_a_fault_is_reported_in_one_line(page, text, fault):
    assert page(text) == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "The bandwidth-delay product, and its standard\ndeviation.",
        "`by chance` is code",
        "    by chance is code\n",
        "```\nby chance is code\n```\n",
        "```\ncode\n```\n`beneath` is a table, `x` is another\n",
        "<!-- fig1 -->\nby chance\n<!-- end -->\n",
        "## fig8: 1% of losses by chance\n",
        "| " + "cell " * 30 + "|",
        "`scripts/lint_docs.py`, `crates/CRATE/tests`, `models/NAME-v1`",
        "[there](other.md#one-more-head), [outside](https://example.org/by-chance)",
    ],
)
def test_code_and_generated_text_have_no_fault(page, text):
    assert page(text) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", 'x = 1\ny = "lost by chance"\n', 2),
        ("a.py", 'y = ("lost by "\n     "chance here")\n', 1),
        ("a.py", 'y = f"{x} is lost by chance"\n', 1),
        ("a.py", 'def f():\n    """Packets lost by\n    chance."""\n', 2),
        ("a.py", "# Lost by\n# chance.\n", 1),
        ("a.rs", "fn f() {} // lost by chance\n", 1),
        ("a.rs", "/// Lost by\n/// chance.\n", 1),
        ("a.rs", 'let x = "lost by chance";\n', 1),
        ("a.rs", "let q = '\"'; // lost by chance\n", 1),
        ("a.rs", 'let x = r#"a "word", lost by chance"#;\n', 1),
        ("a.rs", "/* one\nlost by chance */\n", 2),
        ("a.h", "/*\n * Packets lost by\n * chance.\n */\n", 2),
        ("a.c", 'int x;\n\nchar *s = "lost by chance"; /* fine */\n', 3),
        ("a.toml", "x = 1\ny = 2  # lost by chance\n", 2),
        ("a.toml", "# Lost by\n# chance.\n", 1),
        ("a.toml", 'description = "lost by chance"\n', 1),
        ("Makefile", "all: ## packets lost by chance\n", 1),
    ],
)
def test_a_private_word_in_a_comment_or_string_is_a_fault(tmp_path, name, text, line):
    (tmp_path / name).write_text(text)
    assert code_faults(tmp_path / name) == [f"{tmp_path / name}:{line}: 'by chance'; write: at random, random"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "beneath = product(lesson)\n"),
        ("a.py", 'config["beneath"] = "lessons"\n'),
        ("a.py", "# `beneath` is a table\n"),
        ("a.py", 'x = by\ny = chance\n"""A docstring."""\n'),
        ("a.rs", "fn product(lesson: Beneath<'a>, deviation: &'a str) {}\n"),
        ("a.rs", 'table.get("beneath")\n'),
        ("a.rs", 'let wrong = "beneath: rates must lie in order";\n'),
        ("a.rs", 'let spec = r#"{{"beneath": {{"kind": "rate"}}}}"#;\n'),
    ],
)
def test_names_in_code_have_no_fault(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert code_faults(tmp_path / name) == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.py", "\ndef test_of_one_lesson():\n", "2: test test_of_one_lesson: 'lesson'; write: training flows"),
        ("a.py", "class A:\n    def test_waits_in_vain(self):\n", "2: test test_waits_in_vain: 'in vain'; write: "),
        ("a.py", "async def test_who_asks_waits():\n", "1: test test_who_asks_waits: begins with 'who'; say "),
        ("a.rs", "#[test]\nfn what_is_lost() {\n", "2: test what_is_lost: begins with 'what'; say "),
        ("a.rs", '#[test]\n// why\n#[ignore = "x"]\nfn none_waits() {', "4: test none_waits: begins"),
        ("a.rs", "#[test] fn losses_by_chance() {}\n", "1: test losses_by_chance: 'by chance'; write: at random"),
    ],
)
def test_a_private_word_or_a_question_word_in_the_name_of_a_test_is_a_fault(tmp_path, name, text, fault):
    file = tmp_path / name
    file.write_text(text)
    (found,) = name_faults(file)
    assert found.startswith(f"{file}:{fault}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "def what_a_lesson_is():\n"),
        ("a.py", "def test_whatever_comes_is_read():\n"),
        ("a.py", "def test_a_queue_of_one_bandwidth_delay_product():\n"),
        ("a.rs", "fn what_a_lesson_is() {}\n#[test]\nfn reads_again() {}\nfn who_is_asked() {}\n"),
        ("a.c", "int what_a_lesson_is(void);\n"),
    ],
)
def test_other_names_have_no_fault(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert name_faults(tmp_path / name) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1\n# It is recieved.\n", "2: recieved ==> received"),
        ("# It begins anew.\n", "1: anew ==> again"),
        ("def test_it_begins_anew():\n", "1: anew ==> again"),
        ("fn whom_it_asks() {}\n", "1: whom ==> who"),
    ],
)
def test_codespell_refuses_misspellings_and_private_words(tmp_path, text, fault):
    (tmp_path / "a.py").write_text(text)
    done = codespell(tmp_path / "a.py")
    assert (done.returncode, done.stdout) == (65, f"{tmp_path / 'a.py'}:{fault}\n")


@pytest.mark.parametrize(
    "text",
    [
        "ECT(0), O_WRONLY, the 32nd of 256ths",
        "commit afe365775a",
        r"b'caf\xe9'",
        '"taget"  # codespell:ignore taget',
    ],
)
def test_codespell_accepts_terms_digests_and_words_misspelled_on_purpose(tmp_path, text):
    (tmp_path / "a.py").write_text(f"{text}\n")
    done = codespell(tmp_path / "a.py")
    assert (done.returncode, done.stdout) == (0, "")


def codespell(file):
    """Runs it as `make lint` does."""
    command = [sys.executable, "-m", "codespell_lib", file]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_unchecked_paths_exist_and_their_files_are_left_out():
    assert [one for one in UNCHECKED if not (ROOT / one).exists()] == []
    files = {str(file.relative_to(ROOT)) for file in sources()}
    assert "python/headway/reproduce/claim.py" in files
    assert [
        file for file in files if file in UNCHECKED or file.startswith(tuple(f"{one}/" for one in UNCHECKED))
    ] == []
    assert {"examples/train_sb3.py", "scripts/gate.py"} <= files


WORDS = "word " * 19  # 95 columns


@pytest.mark.parametrize(
    ("text", "better"),
    [
        (f"{WORDS}and more", f"{WORDS}and\nmore"),
        (f"- {WORDS}and more", f"- {WORDS}and\n  more"),
        ("short\nlines", "short lines"),
        ("- one\n- two\n  words", "- one\n- two words"),
        (f"{WORDS}`some code`", f"{WORDS.strip()}\n`some code`"),
        (f"{WORDS}more - less", f"{WORDS.strip()}\nmore - less"),
        ("| a |\n| b |", "| a |\n| b |"),
        ("    code\n    code", "    code\n    code"),
        ("# Head\ntext", "# Head\ntext"),
        ("<!-- fig -->\none\ntwo\n<!-- end -->", "<!-- fig -->\none\ntwo\n<!-- end -->"),
    ],
)
def test_only_prose_is_wrapped(text, better):
    assert wrapped(f"{text}\n") == f"{better}\n"


def test_a_long_comment_is_a_fault_and_long_code_is_allowed(tmp_path):
    file = tmp_path / "a.rs"
    file.write_text(f"// fine\nlet x = y; // {WORDS}and more\n    // {WORDS}\n// https://{'x' * 100}\n")
    assert long_prose(file) == [f"{file}:3: 102 columns; wrap it at 100: scripts/wrap_docs.py"]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.py", f'"""{WORDS}and more"""\n', "1: 109 columns"),
        ("a.py", f'def f():\n    """One.\n\n    {WORDS}more.\n    """\n', "4: 104 columns"),
        ("a.py", f'class A:\n    x: int\n    r"""{WORDS}more"""\n', "3: 110 columns"),
        ("a.c", f"/* {WORDS}more */\n", "1: 105 columns"),
        ("a.h", f"/*\n * One.\n * {WORDS}more\n */\n", "3: 102 columns"),
        ("a.cc", f"\t\t/* {WORDS[15:]}more */\n", "1: 106 columns"),
    ],
)
def test_a_long_line_of_a_docstring_or_of_a_block_comment_is_a_fault(tmp_path, name, text, fault):
    file = tmp_path / name
    file.write_text(text)
    assert long_prose(file) == [f"{file}:{fault}; wrap it at 100"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", f'x = """\n{WORDS}and more\n"""\n'),
        ("a.py", f'print("{WORDS}and more")\n'),
        ("a.py", f'"""Where:\n\n    https://{"x" * 100}\n"""\n'),
        ("a.c", f"int x; /* {WORDS}more */\n"),
        ("a.c", f"/*\n * https://{'x' * 100}\n */\n"),
        ("a.c", f'/* One. */\nchar *x = "{WORDS}more";\n/* Two. */\n'),
    ],
)
def test_a_long_line_of_code_or_a_long_word_is_allowed(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert long_prose(tmp_path / name) == []


@pytest.mark.parametrize(
    ("text", "better"),
    [
        (f"# {WORDS}and more\nx = 1", f"# {WORDS}and\n# more\nx = 1"),
        (f"    /// {WORDS}\n    /// and more", f"    /// {WORDS.removesuffix(' word ')}\n    /// word and more"),
        (f"//! Head\n//!\n//! {WORDS}and more", f"//! Head\n//!\n//! {WORDS.strip()}\n//! and more"),
        (f"// - {WORDS}and more\n// - two", f"// - {WORDS.strip()}\n//   and more\n// - two"),
        (f"// one\n/// {WORDS}and more", f"// one\n/// {WORDS.strip()}\n/// and more"),
        ("# short\n# lines", "# short\n# lines"),
        (f"/// ```\n/// {WORDS}and more\n/// ```", f"/// ```\n/// {WORDS}and more\n/// ```"),
        (f"//     {WORDS}and more", f"//     {WORDS}and more"),
        (f"x = 1  # {WORDS}and more", f"x = 1  # {WORDS}and more"),
        (f"# noqa: {WORDS}and more", f"# noqa: {WORDS}and more"),
    ],
)
def test_only_comments_are_wrapped(text, better):
    assert with_wrapped_comments(f"{text}\n") == f"{better}\n"
