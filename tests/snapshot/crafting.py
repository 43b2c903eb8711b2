"""Craft snapshots with right checksums and wrong arrays: refused, or the same in all indexes.

    python -m tests.snapshot.crafting COUNT [SEED]

The arrays of real snapshots, over every type and operator, are changed a little: in ways that break
a rule, and in ways that break none. Whatever `open_snapshot` takes must then give the same answers
in every index. The process prints the number of each case before it begins, so that one in which a
kernel ends the process is known, and counts in JSON at its end.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.errors import SnapshotError
from headgate.matching import KINDS, build_index, build_index_from_snapshot
from headgate.queries import Query, QuerySet
from headgate.schema import Schema, Stream
from headgate.snapshot import Segment, Snapshot, files, open_snapshot, write_snapshot
from headgate.snapshot.arrays import texts
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, IS_NULL, MATCHES, WITHIN
from headgate.sql import Script
from headgate.testing.contract import lists
from headgate.testing.generate import every_type, random_rows, random_where
from tests.matching.ways import WAYS, forced_way

QUERIES, EVENTS = 40, 25
SNAPSHOTS = 8  # of which each case changes one
Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Change = Callable[[Random, Arrays], None]

OTHERS = """
CREATE STREAM other (int_x STRING, string_x INT, date_x DOUBLE);
CREATE QUERY joined AS SELECT e.int_x, o.date_x FROM everything e, other o
    WHERE e.string_x = o.int_x AND o.string_x > 3 AND e.double_y <= o.date_x;
CREATE QUERY counted AS SELECT string_x, COUNT(*) AS n FROM everything GROUP BY string_x;
CREATE QUERY elsewhere AS SELECT * FROM other WHERE int_x LIKE 'a%' AND string_x < 7;
CREATE QUERY nothing AS SELECT * FROM everything WHERE int_x > 2147483647;
"""
PATTERNS = [
    "",
    "%",
    "a",
    "_%_",
    "\\",
    "a\\",
    "\\a",
    "(",
    "(?=a)",
    "[a-",
    "a{1000}{1000}",
    "|",
    "\0",
]
FRAMES = [
    "SELECT * FROM everything",
    "SELECT * FROM other",
    "SELECT * FROM everything AS e",
    "SELECT * FROM everything WHERE int_x = 1",
    "SELECT int_x FROM everything",
    "SELECT DISTINCT int_x FROM everything",
    "SELECT * FROM everything e, other o",
    "SELECT * FROM nowhere",
    "SELECT * FROM everything; SELECT * FROM other",
    "SELECT",
    "",
    "(" * 5000,
]


def write_real(directory: Path, rng: Random) -> Snapshot:
    """A base, tombstones and a delta of queries over all types and operators."""
    stream = every_type()
    script = Script(Schema((stream,)))
    others = [query for query in script.read(OTHERS) if isinstance(query, Query)]

    def draw(number: int) -> Query:
        depth = rng.randrange(4)
        where = random_where(rng, stream, depth)
        (query,) = script.read(f"CREATE QUERY q{number} AS SELECT * FROM everything WHERE {where}")
        assert isinstance(query, Query)
        return query

    queries = [*map(draw, range(QUERIES)), *others]
    first = write_snapshot(QuerySet(script.schema, queries), directory / "a")
    queries[2:3] = map(draw, (QUERIES, QUERIES + 1))  # so few that they become a delta
    return write_snapshot(QuerySet(script.schema, queries), directory / "b", parent=first)


def pick_array(rng: Random, arrays: Arrays) -> str:
    return rng.choice([name for name, values in arrays.items() if len(values)])


def overwrite(rng: Random, arrays: Arrays) -> None:
    """Another number in the place of one: an extreme, a neighbour, or one that stands elsewhere."""
    values = arrays[pick_array(rng, arrays)]
    limits, place = np.iinfo(values.dtype), rng.randrange(len(values))
    here, other = int(values[place]), int(rng.choice(values))
    extremes = [limits.min, limits.max, 0, 1, 2, 3, 4, -1, -8, -16, -17, len(values)]
    new = rng.choice([rng.choice(extremes), here + 1, here - 1, 2 * here, other, other + 1])
    values[place] = min(max(new, limits.min), limits.max)


def exchange(rng: Random, arrays: Arrays) -> None:
    """Two numbers of an array change places."""
    values = arrays[pick_array(rng, arrays)]
    here, there = rng.randrange(len(values)), rng.randrange(len(values))
    values[[here, there]] = values[[there, here]]


def resize(rng: Random, arrays: Arrays) -> None:
    """A number too few or too many."""
    name = pick_array(rng, arrays)
    values, place = arrays[name], rng.randrange(len(arrays[name]))
    changed = (
        np.delete(values, place) if rng.random() < 0.5 else np.insert(values, place, values[place])
    )
    arrays[name] = changed


def change_atom(rng: Random, arrays: Arrays) -> None:
    """An atom of another kind, all of whose fields fit that kind."""
    count = len(arrays["queries.atoms.kind"])
    place, kind = rng.randrange(count), rng.randrange(5)
    columns = len(arrays["queries.atoms.columns.stream"])
    patterns = len(arrays["queries.atoms.patterns.kind"])
    pattern = rng.randrange(patterns) if patterns else 0
    fields = {
        "kind": kind,
        "column": -1 if kind == CONSTANT else rng.randrange(columns),
        "second": rng.randrange(columns) if kind == COMPARE else -1,
        "code": rng.randrange({CONSTANT: 3, COMPARE: 6}.get(kind, 1)),
        "negated": rng.randrange(2) if kind in (IS_NULL, MATCHES) else 0,
        "starts_inside": rng.randrange(2) if kind == WITHIN else 0,
        "start": pattern if kind == MATCHES else 0,
        "end": pattern + 1 if kind == MATCHES else 0,
    }
    for name, value in fields.items():
        arrays[f"queries.atoms.{name}"][place] = value


def turn_field(rng: Random, arrays: Arrays) -> None:
    """Another column, operator, flag or pattern for an atom that has one."""
    kinds = arrays["queries.atoms.kind"]
    place = rng.randrange(len(kinds))
    columns = len(arrays["queries.atoms.columns.stream"])
    name = rng.choice(["column", "second", "code", "negated", "starts_inside"])
    limit = {"column": columns, "second": columns, "code": 6}.get(name, 2)
    arrays[f"queries.atoms.{name}"][place] = rng.randrange(limit)


def move_cuts(rng: Random, arrays: Arrays) -> None:
    """The cuts of an atom reversed, repeated, or moved by a little or to an end of the numbers."""
    withins = np.flatnonzero(arrays["queries.atoms.kind"] == WITHIN).tolist()
    if not withins:
        return
    atom = rng.choice(withins)
    start, end = (int(arrays[f"queries.atoms.{name}"][atom]) for name in ("start", "end"))
    pool = rng.choice(["numbers", "numbers", "wide_high", "wide_low"])
    values = arrays[f"queries.atoms.cuts.{pool}"]
    cuts = values[start:end]
    if not len(cuts):
        return
    limits = np.iinfo(values.dtype)
    match rng.randrange(4):
        case 0:
            cuts[:] = cuts[::-1].copy()
        case 1:
            cuts[:] = cuts[0]
        case 2:
            place = rng.randrange(len(cuts))
            cuts[place] = min(int(cuts[place]) + 1, limits.max)
        case 3:
            cuts[rng.randrange(len(cuts))] = rng.choice([limits.min, limits.max, 0])


def change_text(rng: Random, arrays: Arrays) -> None:
    """One of some strings becomes another, and the offsets fit it."""
    name, choices = rng.choice(
        [
            ("queries.atoms.patterns.text", PATTERNS),
            ("queries.atoms.patterns.escape", ["", "|", "ab", "\\", "𝄞"]),
            ("queries.atoms.cuts.texts", ["", "a", "\0", "\ud800", "zz"]),
            ("queries.atoms.columns.alias", ["", "e", "o", "x"]),
            ("queries.frames", FRAMES),
            ("queries.ids", ["", "q1", "q2", "\0"]),
            ("queries.metadata", ["", "{}", "{"]),
        ]
    )
    packed = texts.Texts(arrays[f"{name}.offsets"], arrays[f"{name}.data"])
    strings = texts.unpack(packed)
    if not strings:
        return
    strings[rng.randrange(len(strings))] = rng.choice(choices)
    again = texts.pack(strings)
    arrays[f"{name}.offsets"], arrays[f"{name}.data"] = again.offsets, again.data.copy()


def change_program(rng: Random, arrays: Arrays) -> None:
    """Another condition for a query: right, wrong, of nothing, or very deep."""
    offsets, program = arrays["queries.trees.offsets"], arrays["queries.trees.program"]
    atoms = len(arrays["queries.atoms.kind"])
    query = rng.randrange(len(offsets) - 1)
    atom = rng.randrange(atoms)
    arity = rng.randrange(4)
    parts = [rng.randrange(atoms) for _ in range(arity)]
    other = rng.randrange(len(offsets) - 1)
    copied = program[offsets[other] : offsets[other + 1]].tolist()
    new = rng.choice(
        [
            [-16],
            [-17],
            [-16, atom, -20],
            [atom, -17, -1, -20],
            [*parts, -16 - 2 * arity],
            [*parts, -17 - 2 * arity, -8 - rng.randrange(8)],
            [*parts, -16 - 2 * rng.randrange(5)],
            [atom, *[-1] * rng.choice([1, 2, 300, 5000])],
            [atom, *[-18] * rng.choice([1, 2, 300, 5000])],
            [*copied, -1],
            [*copied, *copied, -17 - 4],
            [*copied, *copied, atom, -16 - 6],
        ]
    )
    begin, end = int(offsets[query]), int(offsets[query + 1])
    arrays["queries.trees.program"] = np.concatenate(
        [program[:begin], np.array(new, np.int32), program[end:]]
    )
    offsets[query + 1 :] += len(new) - (end - begin)


# in the order in which they are made: the first ones need arrays that fit each other
CHANGES: tuple[Change, ...] = (
    *(change_atom, turn_field, move_cuts, change_text, change_program),
    *(overwrite, exchange, resize),
)
ON_TOMBSTONES: tuple[Change, ...] = (overwrite, exchange, resize)


def craft(real: Snapshot, directory: Path, rng: Random) -> str:
    """Write a changed copy, whose checksums are right; return what was changed."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(real.directory, directory)
    content = json.loads((directory / "manifest.json").read_text())
    place = rng.choice([0, 0, 0, 1, 2, 2])
    entry, segment = content["segments"][place], real.segments[place]
    path = directory / entry["file"]
    kind = rng.random()
    if kind < 0.05:
        names = ["bytes"]
        damaged = bytearray(path.read_bytes())
        for _ in range(rng.choice([1, 4, 30])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
    else:
        names = change_arrays(segment, path, rng)
    if kind > 0.97:
        names.append("schema")
        old, new = rng.sample(["INT", "BIGINT", "STRING", "DOUBLE", "DATE", "BOOLEAN"], 2)
        content["schema"] = content["schema"].replace(f"x {old}", f"x {new}")
    entry.update(size=path.stat().st_size, blake2b=files.checksum(path))
    del content["checksum"]
    text = json.dumps(content, sort_keys=True).encode()
    content["checksum"] = hashlib.blake2b(text, digest_size=16).hexdigest()
    (directory / "manifest.json").write_text(json.dumps(content))
    return f"{entry['kind']}: {', '.join(names)}"


def change_arrays(segment: Segment, path: Path, rng: Random) -> list[str]:
    """Write the arrays of a segment, changed; return how."""
    arrays = {name: values.copy() for name, values in files.flatten_arrays(segment).items()}
    changes = CHANGES if "queries.stream" in arrays else ON_TOMBSTONES
    chosen = sorted(rng.choices(changes, k=rng.choice([1, 1, 1, 2, 3])), key=CHANGES.index)
    for change in chosen:
        change(rng, arrays)
    files.write_arrays(path, arrays)
    return [change.__name__ for change in chosen]


def try_snapshot(directory: Path, rng: Random, stream: Stream) -> bool:
    """Return whether a snapshot is taken; assert that then all indexes give the same answers."""
    try:
        snapshot = open_snapshot(directory)
    except SnapshotError as error:
        if not str(error).startswith(str(directory)):
            raise
        return False
    # the schema may have changed with the rest
    stream = snapshot.schema.stream(stream.name)
    rows = [
        {name: value for name, value in row.items() if stream[name].type == every_type()[name].type}
        for row in random_rows(rng, every_type(), EVENTS)
    ]
    queries = snapshot.query_set()
    expected = lists(build_index(queries, "scan", stream=stream.name).match(rows))
    with forced_way(rng.choice(list(WAYS))):
        for kind in KINDS:
            index = build_index_from_snapshot(snapshot, kind, stream=stream.name).index
            assert lists(index.match(rows)) == expected, f"{kind} differs from scan"
    return True


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    faulthandler.enable()
    # nothing needs to outlive this process
    vars(files)["sync"] = Path.exists
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        real = []
        for number in range(SNAPSHOTS):
            directory = Path(scratch, str(number))
            real.append(write_real(directory, Random(f"{seed} {number}")))
        stream = every_type()
        for case in range(count):
            rng = Random(f"{seed} case {case}")
            how = craft(rng.choice(real), Path(scratch, "crafted"), rng)
            print(f"case {case}, seed {seed}: {how}", file=sys.stderr, flush=True)
            try:
                taken = try_snapshot(Path(scratch, "crafted"), rng, stream)
            except Exception:
                traceback.print_exc()
                outcomes["failed"] += 1
            else:
                outcomes["taken" if taken else "refused"] += 1
    print(json.dumps(outcomes))
    return 1 if outcomes["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
