"""Texts changed a little: a token or character deleted, inserted, doubled or swapped."""

from __future__ import annotations

import random
import re

TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\w+|<=|>=|<>|\s+|.", re.DOTALL)
TOKENS = (
    "( ) , . ; = < > <> <= == != <=> ! - + * / % ' \" ` \\ AND OR NOT IN BETWEEN LIKE ILIKE RLIKE "
    "ESCAPE IS NULL TRUE FALSE COALESCE CAST AS DATE TIMESTAMP INTERVAL CASE WHEN END SELECT FROM "
    "WHERE EXISTS ANY ALL DISTINCT qty side price flag day seen 1 0 -1 1.5 1e5 'a' '' \"b\" -- /* "
    "*/ /*+ [ ] { } : :: | || & ^ ~ @ # $ ? \\n \0 é 𝄞 \u00a0 \u2028 0x1F 1L 1.5D r'x' X'00' b'1'"
).split(" ")
CHARACTERS = "()'\"`\\;,.=<>!-+*/% \n\t\0aANé𝄞09_"


def mutated(text: str, rng: random.Random) -> str:
    """One to three changes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice((by_token, by_token, by_character))(text, rng)
    return text


def by_token(text: str, rng: random.Random) -> str:
    tokens = TOKEN.findall(text)
    change(tokens, rng.choice(TOKENS), rng)
    return "".join(tokens)


def by_character(text: str, rng: random.Random) -> str:
    characters = list(text)
    change(characters, rng.choice(CHARACTERS), rng)
    return "".join(characters)


def change(parts: list[str], new: str, rng: random.Random) -> None:
    """Delete, insert, double, replace or swap one part."""
    at = rng.randrange(len(parts)) if parts else 0
    kind = rng.randrange(5) if parts else 1
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts[at:at] = [" ", new, " "] if rng.random() < 0.5 else [new]
    elif kind == 2:
        parts[at:at] = [parts[at]]
    elif kind == 3:
        parts[at] = new
    else:
        other = rng.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
