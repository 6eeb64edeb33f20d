"""Phrases that readers had to decode do not return, in pages, docstrings, help texts and messages.

`ALLOWED` says how many are left. A change may lower a number, and never raise it.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PHRASES = {
    r"(?:is|are|was|were|be) none\b": "name what is invalid or missing",
    r"none the (?:worse|less)\b": "is accepted, nevertheless",
    r"anew\b": "again, new",
    r"beside\b": "next to, compared with, and",
    r"(?:is|are|was|were|be|been) told\b|tells? of\b|told of\b": "is reported, reports",
    r"(?:is|are|was|were) said of\b|says? of\b|said of\b": "states, applies to",
    r"(?:can|could|cannot|to) be had\b|is had\b": "is available",
    r"(?:goes|go|went|gone|going) on\b": "continues",
    r"whoever\b": "name the person",
    r"in the mean\b": "on average",
    r"let be\b": "ignored",
    r"all else\b": "everything else",
    r"but for\b": "except",
    r"(?:is|are|was|be|much|far) off by\b|how far off\b": "error, margin of error",
    r"19 times in 20\b": "95 %",
    r"stands? (?:in|at|on|there|beside|by|before|first|alone|here)\b|as it stands\b": "is",
    r"as it were\b": "leave it out",
    r"mend(?:s|ed|ing)?\b": "fix, correct",
    r"and the like\b": "and similar",
    r"in each other's place\b": "swapped",
    r"for ever\b": "permanently, without end",
    r"made[ -]up (?:clinic|data|members|values|changelog|people)\b": "synthetic, invented",
    r"the other way round\b": "the reverse",
    r"in the dress of\b": "in the style of",
    r"nobody answers\b": "the server does not answer",
    r"a line of its own\b": "a separate line",
}
FOUND = re.compile(rf"\b(?:{'|'.join(PHRASES)})")
LINE_END = re.compile(r"\s*\n\s*(?:#:? )?")

ALLOWED = {"pages": 0, "code": 21}
"""How many of these phrases pages and code may hold, until they are rewritten. Lower the numbers, never raise them."""

EXCEPT = ("docs/proofs/", "tests/fuzz/", "tests/test_prose.py")


def texts(kind: str) -> list[Path]:
    """Return the Markdown pages of the project (`pages`), or its code, specs and notebooks (`code`)."""
    pattern = ["*.md"] if kind == "pages" else ["*.py", "*.yaml", "*.ipynb", "*.html", "Makefile", "*.toml"]
    asked = ["git", "ls-files", "-z", "--", *pattern]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in listed if name and not name.startswith(EXCEPT) and (ROOT / name).exists()]


def phrases(path: Path) -> list[str]:
    """Return each phrase in a file with the words around it; lines of a paragraph or comment count as one."""
    text = LINE_END.sub(" ", path.read_text().replace(" None", " NULL")).lower()
    return [text[max(0, found.start() - 30) : found.end() + 20] for found in FOUND.finditer(text)]


@pytest.mark.parametrize("kind", ALLOWED)
def test_phrases_that_readers_had_to_decode_do_not_return(kind: str) -> None:
    found = [f"{path.relative_to(ROOT)}: {phrase}" for path in texts(kind) for phrase in phrases(path)]

    assert len(found) <= ALLOWED[kind], "\n".join(found)


def test_a_phrase_is_found_across_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("A list that\ngoes\non, if value is None.")

    assert len(phrases(page)) == 1


def test_lines_of_pages_are_at_most_100_columns_wide() -> None:
    """Except tables, links, code and indented formulas, which cannot be wrapped."""
    wide = []
    for page in texts("pages"):
        prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for line in prose.splitlines():
            cannot = line.startswith(("|", "    ")) or "](" in line or "://" in line
            if len(line) > 100 and not cannot:
                wide.append(f"{page.relative_to(ROOT)}: {line[:60]} ...")

    assert wide == []


def test_no_wrapped_formula_begins_a_quotation_or_a_list() -> None:
    """A line that begins with `>=` would be shown as a quotation, and one that begins with `+ ` as a list."""
    found = [
        f"{page.relative_to(ROOT)}: {line[:60]}"
        for page in [*texts("pages"), *ROOT.glob("docs/proofs/*.md")]
        for line in page.read_text().splitlines()
        if re.match(r" {0,3}(?:>=? ?[\w(|]|\+ )", line)
    ]

    assert found == []
