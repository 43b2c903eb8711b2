"""`to_re2` against answers that real Java gave, and its refusals by name.

Java 25 gave the answers, and Java 17 the same ones, but for `\\b` next to `é`. The translation was
also compared with both on millions of generated patterns and texts.
"""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from headgate.predicate.pattern import PatternRefused, compile_re2, to_re2

# A pattern, texts in which Java finds it, and texts in which it does not.
# fmt: off
JAVA: list[tuple[str, list[str], list[str]]] = [
    ("a$", ["a", "a\n", "a\r", "a\r\n", "a\x85", "a\u2028", "a\u2029"], ["a\n\n", "a\n\r", "ab"]),
    (r"a\Z", ["a", "a\r\n", "a\u2028"], ["a\n\n"]),
    (r"a\z", ["a", "ba"], ["a\n"]),
    ("^$", ["", "\n", "\r\n", "\r"], ["\n\r", "x"]),
    (r"\r$", ["\r", "\r\r", "\r\r\n", "\r\x85"], ["\r\n"]),
    (r"^\s$", ["\n", "\r", "\r\r\n", "\n\n", " \n"], ["\r\n"]),
    (r"^\s?$", ["\r\n", "\r", "\n\r"], ["\r\n\n"]),
    ("^[^a]$", ["b\n", "\r\r", "😀\r\n"], ["\r\n"]),
    (r"^[^\n]*$", ["\r\n", "a\r\n", "a\r\r\n"], ["a\nb"]),
    (r"^\s*$", ["\r\n", "\r\n\n"], [" a"]),
    (r"^a\W$", ["a\r\r\n", "a-\n"], ["a\r\n", "a"]),
    (r"^\P{L}$", ["1\n"], ["\r\n", "a"]),
    ("/[^/]+$", ["x/y\r\n", "x/\r\n"], ["x/"]),
    ("(^|,)ab(,|$)", ["ab", "x,ab,y", "ab\n", "x,ab\r\n"], ["xab", "abc"]),
    ("a$|b", ["a\n", "bx"], ["ax"]),
    ("(?:a$)?b{0}", ["", "x"], []),
    ("a$?b", ["ab"], ["a\nb"]),
    ("x(?s:.)$", ["x\r", "x\n\n", "x\n"], ["x\r\n"]),
    (r"^(a|\s)$", ["a\n", "a\r\n", " \r\n", "\r\r\n"], ["\r\n"]),
    (r"^(ab\W)+$", ["ab\rab-\n", "ab\r\r\n"], ["ab\r\n"]),
    (r"^(\s|a){1,2}$", ["a\r\n", "\r\n", "\r\n\n", "\r\r\n"], ["\r\ra"]),
    ("^a|b", ["ba", "xb"], ["xa"]),
    ("a^b", [], ["a\nb", "ab"]),
    (r"\Aa", ["a"], ["\na"]),
    ("^*a", ["ba"], []),
    ("(^|a)+b", ["ab", "b", "cab"], []),
    ("^.$", ["a", "😀", "\x0b", "\x0c", "\x00"], ["\n", "\r", "\x85", "\u2028", "\u2029"]),
    (r"(?s)^.\z", ["\n", "\u2029", "😀"], ["ab"]),
    ("(?s)a(?-s).b", ["a b"], ["a\nb"]),
    ("(?s:.)a.", ["\nab"], ["\na\n"]),
    (r"^\s\z", [" ", "\x0b", "\t"], ["\x1c", "\xa0", "\u3000", "\x85"]),
    (r"\S", ["\xa0"], ["\x0b"]),
    (r"^\d\z", ["7"], ["١", "𝟘"]),
    (r"\D", ["١"], ["7"]),
    (r"^\w\z", ["_", "k"], ["é", "\u212a", "١"]),
    (r"\W", ["é"], ["a"]),
    (r"^\h\z", ["\t", " ", "\xa0", "\u180e", "\u3000"], ["\n", "\u200b"]),
    (r"\H", ["\n"], ["\u2003"]),
    (r"^\v\z", ["\n", "\x0b", "\x0c", "\r", "\x85", "\u2028", "\u2029"], [" "]),
    (r"\V", ["a"], ["\x85"]),
    (r"^[\v-]\z", ["\x0b", "-"], ["\n"]),
    (r"^[\t-\v]\z", ["\n", "\x0b"], ["\x0c"]),
    ("(?i)k", ["K", "k"], ["\u212a"]),
    ("(?i)[k]|z", ["K", "Z"], ["\u212a"]),
    ("(?i)s|z", ["S"], ["ſ"]),
    ("(?i)ß", ["ß"], ["ẞ", "SS"]),
    ("(?i)é", ["é"], ["É"]),
    ("(?i)straße", ["STRAßE"], ["STRASSE"]),
    ("(?i)i", ["I"], ["İ", "ı"]),
    ("(?i)[j-l]", ["K", "J"], ["\u212a"]),
    ("(?i)[^k]", ["\u212a"], ["k", "K"]),
    ("(?i)[Z-a]", ["A", "z", "["], ["b", "Y"]),
    (r"(?i)\x4b\u006B", ["kK"], ["\u212ak"]),
    ("(?i)a(?-i)b", ["Ab"], ["AB"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("a(?i)b|c", ["aB", "C"], ["A"]),
    ("(a(?i)b)c", ["aBc"], ["aBC"]),
    (r"(?i)\p{Lower}", ["A"], ["1", "É"]),
    (r"(?i)\p{Lu}", ["a", "ǅ"], ["1", "ª"]),
    (r"(?i)\P{Lu}", ["1"], ["a"]),
    ("[Kk]|z", ["K"], ["\u212a"]),
    (r"\p{L}", ["é", "ª", "字"], ["1", "_"]),
    (r"\pL", ["a"], ["1"]),
    (r"\PL", ["1"], ["a"]),
    (r"\p{Lt}", ["ǅ"], ["A"]),
    (r"\p{IsNd}", ["١"], ["½"]),
    (r"\p{gc=Sc}", ["\u20ac"], ["a"]),
    (r"\p{LC}", ["ǅ"], ["字"]),
    (r"\p{LD}", ["5", "字"], ["_"]),
    (r"\p{Alpha}", ["a"], ["é"]),
    (r"\p{Punct}", ["!", "_"], ["\xa7"]),
    (r"\p{XDigit}", ["f"], ["g"]),
    (r"\p{Space}", ["\x0b"], ["\xa0"]),
    (r"\p{Cntrl}", ["\x7f"], ["\x80"]),
    (r"\p{Graph}", ["~"], [" "]),
    (r"\p{Blank}", ["\t"], ["\n"]),
    (r"\p{L1}", ["ÿ"], ["Ā"]),
    (r"^\p{Cs}?\z", [""], ["😀"]),
    (r"\x{1F600}", ["😀"], ["ud83d"]),
    (r"\uD83D\uDE00+$", ["😀😀"], []),
    (r"\0101\07", ["A\x07"], ["A7"]),
    (r"\0400", [" 0"], ["Ā"]),
    (r"\cA\c[\ca", ["\x01\x1b!"], []),
    (r"\t\n\r\f\a\e", ["\t\n\r\x0c\x07\x1b"], []),
    (r"\é\_\-\<", ["é_-<"], []),
    (r"\Qa.*\E+", ["a.**", "a.*"], ["a.+"]),
    (r"\Qa\Eb\Q", ["ab"], []),
    (r"a\Q\E*b", ["aab", "b"], []),
    (r"\Q(\\E\)", ["(\\)"], []),
    (r"[\Q^-]\E]", ["^", "-", "]"], ["a"]),
    (r"\x4\Qa\E", ["J"], []),
    (r"^[]a]\z", ["]", "a"], ["b"]),
    (r"^[^]a]\z", ["b"], ["]"]),
    (r"^[a-]\z", ["-"], ["b"]),
    (r"^[-a]\z", ["-"], []),
    (r"^[a-c-e]\z", ["-", "b", "e"], ["d"]),
    (r"^[\d-z]\z", ["5", "-", "z"], ["y"]),
    (r"^[a&b]\z", ["&"], []),
    (r"^[!-&&]\z", ["%", "&"], ["'"]),
    (r"^[a[b-c]]\z", ["a", "c"], ["]"]),
    (r"^[^a[b]]\z", ["c"], ["b"]),
    (r"^[a[^b]]\z", ["a", "c"], ["b"]),
    (r"^[a-[b]]\z", ["a", "-", "b"], []),
    (r"^[[:alpha:]]\z", ["a", ":"], ["b", "["]),
    (r"^[a^]\z", ["^"], []),
    (r"^[^^]\z", ["a"], ["^"]),
    (r"^[\^\]]\z", ["]"], ["\\"]),
    (r"^[^\W]\z", ["a"], ["-", "é"]),
    (r"^[\p{L}\d]\z", ["é", "5"], ["-"]),
    (r"^[^\p{L}\d]\z", ["-"], ["é", "5"]),
    (r"^[^\x{0}-\x{10ffff}]?\z", [""], ["a"]),
    (r"^[a😀-😂]\z", ["😁"], ["😃"]),
    (r"^(ab){2,3}\z", ["abab"], ["ab", "abababab"]),
    (r"^a{3}?\z", ["aaa"], ["aa"]),
    (r"^(a|ab)(c|bcd)(d*)\z", ["abcd", "abc", "ac"], []),
    ("(|a){2}b", ["b", "ab", "aab"], []),
    (r"^(a?){3}\z", ["aaa"], ["aaaa"]),
    (r"(?<year>\d{4})-\d\d", ["2024-01"], ["24-01"]),
    (r"^(?:)*\z", [""], ["a"]),
    ("a||b", [""], []),
    ("}]", ["}]"], []),
    (r"^a{0}b\z", ["b"], ["ab"]),
    (r"^(?:a*)*b\z", ["aab"], ["c"]),
    (r"^.{2}\z", ["😀😀", "a😀"], ["😀"]),
    (r"\bab\b", ["ab", "ab-", "abé"], ["xab"]),
    (r"a\Bb", ["ab"], ["a b"]),
    (r"\Bb", ["ab"], ["b"]),
]
# fmt: on

TRIPLES = [
    (pattern, text, expected)
    for pattern, matched, missed in JAVA
    for texts, expected in ((matched, True), (missed, False))
    for text in texts
]

# A pattern, the reason of its refusal, and the offset of the offending text.
REFUSED = [
    (r"a(?=b)", "lookahead `(?=`", 1),
    (r"(?!b)a", "negative lookahead `(?!`", 0),
    (r"(?<=b)a", "lookbehind `(?<=`", 0),
    (r"x(?<!b)a", "negative lookbehind `(?<!`", 1),
    (r"(?>ab)", "atomic group `(?>`", 0),
    (r"(a)\1", r"backreference `\1`", 3),
    (r"(?<n>a)\k<n>", r"backreference `\k<n>`", 7),
    (r"xa++", "possessive quantifier `a++`", 1),
    (r"x(ab){2}+", "possessive quantifier `(ab){2}+`", 1),
    (r"a?+", "possessive quantifier `a?+`", 0),
    (r"[a-z&&[^b]]", "character class intersection `&&`", 4),
    (r"a\G", r"end of the previous match `\G`", 1),
    (r"a\R", r"line break `\R`", 1),
    (r"\X", r"grapheme cluster `\X`", 0),
    (r"\b{g}", r"grapheme boundary `\b{g}`", 0),
    (r"\N{DIGIT ONE}", r"character by name `\N{DIGIT ONE}`", 0),
    (r"(?x)a b", "comments mode `(?x)`", 0),
    (r"a(?d)", "Unix lines mode `(?d)`", 1),
    (r"(?iu)k", "Unicode case folding `(?iu)`", 0),
    (r"(?U:k)", "Unicode character classes `(?U:`", 0),
    (r"(?c)", "canonical equivalence `(?c)`", 0),
    (r"(?m)^a", "`^` in multiline mode", 4),
    (r"(?m:a$)", "`$` in multiline mode", 5),
    (r"a$b", "`$` with something behind it", 1),
    (r"(a$|b)c", "`$` with something behind it", 2),
    (r"\Za*", r"`\Z` with something behind it", 0),
    (r"(a|$)*", "`$` inside a repetition", 3),
    (r"(\s?\s?)$", "`$` behind what may end in a carriage return", 8),
    (r"\W(a|$)", "`$` behind what may end in a carriage return", 5),
    (r"\sa?$", "`$` behind what may end in a carriage return", 4),
    (r"\B", r"`\B` before any character", 0),
    (r"a*\B.", r"`\B` before any character", 2),
    (r"(^|a){2}b", "counted repetition `{2}` of what an anchor may leave empty", 5),
    (r"\p{IsAlphabetic}", r"property `\p{IsAlphabetic}`", 0),
    (r"\p{javaLowerCase}", r"property `\p{javaLowerCase}`", 0),
    (r"[a\p{InGreek}]", r"property `\p{InGreek}`", 2),
    (r"\p{IsLatin}", r"property `\p{IsLatin}`", 0),
    (r"\p{IsDigit}", r"property `\p{IsDigit}`", 0),
    (r"\P{Cn}", r"property `\P{Cn}`", 0),
    (r"\pC", r"property `\pC`", 0),
    (r"[a[^\p{L}b]]", r"a negated property inside a class `[a[^\p{L}b]]`", 0),
    (r"a{2}{3}", "repetition of nothing `{3}`", 4),
    (r"a{1001}", "more than 1000 repetitions `{1001}`", 1),
    (r"a{1,99999}", "more than 1000 repetitions `{1,99999}`", 1),
    (r"\uD83D", r"half of a surrogate pair `\uD83D`", 0),
    (r"a\x{DE00}", r"half of a surrogate pair `\x{DE00}`", 1),
    ("a\ud83d", "half of a surrogate pair", 1),
    (r"((a{1000}){1000})", "too large for RE2 (invalid repetition size: {1000})", 0),
    (r"\p{L}{1000}", "too large for RE2 (pattern too large - compile failed)", 0),
]

# What Java rejects too, and where.
INVALID = [
    ("*a", 0),
    ("a**", 2),
    ("a|+", 2),
    ("(?i)?", 4),
    ("a{", 1),
    ("a{,3}", 1),
    ("a{2,1}", 1),
    ("a{2", 1),
    ("{x", 0),
    ("(a", 0),
    ("a)", 1),
    ("(?<1>a)", 0),
    ("(?<n>a)(?<n>b)", 7),
    ("(?P<n>a)", 0),
    ("(?ik:a)", 0),
    ("[a", 0),
    ("[]", 0),
    ("[[]a]", 0),
    ("[b-a]", 1),
    (r"[a-\d]", 1),
    (r"[\b]", 1),
    (r"[a\1]", 2),
    (r"\y", 0),
    (r"a\E", 1),
    (r"\08", 0),
    (r"\x4", 0),
    (r"\x{110000}", 0),
    (r"\u12", 0),
    (r"\p{L", 0),
    (r"\p{}", 0),
    ("a\\", 1),
    (r"\c", 0),
]


def finds(pattern: str, text: str) -> bool:
    return compile_re2(to_re2(pattern)).search(text) is not None


@pytest.mark.parametrize(("pattern", "text", "expected"), TRIPLES)
def test_finds_what_java_finds(pattern: str, text: str, expected: bool) -> None:
    assert finds(pattern, text) is expected


@pytest.mark.parametrize(("pattern", "reason", "offset"), REFUSED)
def test_refuses_by_name(pattern: str, reason: str, offset: int) -> None:
    with pytest.raises(PatternRefused) as caught:
        to_re2(pattern)
    assert (caught.value.reason, caught.value.offset) == (reason, offset)
    assert caught.value.text


@pytest.mark.parametrize(("pattern", "offset"), INVALID)
def test_refuses_what_java_rejects(pattern: str, offset: int) -> None:
    with pytest.raises(PatternRefused, match="not a valid regular expression") as caught:
        to_re2(pattern)
    assert caught.value.offset == offset


def test_offsets_point_into_the_text_as_written() -> None:
    """Quotes are undone before parsing, and must not move what a refusal points at."""
    with pytest.raises(PatternRefused) as caught:
        to_re2(r"\Q...\E(?=b)")
    assert (caught.value.offset, caught.value.text) == (7, "(?=")


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 50_000,
        "[" * 50_000,
        "(" * 101 + "a" + ")" * 101,
        "(?i:" * 200,
        "a{" + "9" * 50_000,
        "a" * 1_000_000,
    ],
)
def test_hostile_text_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        to_re2(pattern)


def test_deep_nesting_needs_no_stack() -> None:
    limit = sys.getrecursionlimit()
    pattern = "(a|" * 100 + "b" + ")*" * 100
    try:
        sys.setrecursionlimit(_depth() + 40)
        translated = to_re2(pattern)
    finally:
        sys.setrecursionlimit(limit)
    assert compile_re2(translated).search("b") is not None


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_nothing_is_printed_when_re2_declines(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PatternRefused):
        to_re2(r"\p{L}{1000}")
    assert capfd.readouterr() == ("", "")


def test_searches_in_linear_time() -> None:
    """Java needs 2^n steps for this one."""
    assert not finds("^(a+)+b", "a" * 100_000)


@given(st.text(alphabet=r"ab^$.\\[](){}?*+|-&:<>=!ipsQEdDwuxR01,\r\né", max_size=14))
def test_any_text_is_translated_or_refused(pattern: str) -> None:
    try:
        compile_re2(to_re2(pattern))
    except PatternRefused as refused:
        offset = refused.offset
    else:
        offset = 0
    assert 0 <= offset <= len(pattern)


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,2}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    )


_PLAIN = st.sampled_from(["a", "b", ".", r"\d", r"\W", "[ab]", "[^a1]", r"\bb", r"a\B", "-"])


@given(
    st.recursive(_PLAIN, _wider, max_leaves=8),
    st.booleans(),
    st.booleans(),
    st.text(alphabet="ab1_ -", max_size=8),
)
def test_agrees_with_python_where_the_languages_do(
    body: str, at_start: bool, at_end: bool, text: str
) -> None:
    """Without line terminators and letters beyond ASCII, Python's `re` and Java mean the same."""
    pattern = ("^" if at_start else "") + f"({body})" + ("$" if at_end else "")
    try:
        matched = finds(pattern, text)
    except PatternRefused:
        reject()
    assert matched is (re.search(pattern, text, re.ASCII) is not None)
