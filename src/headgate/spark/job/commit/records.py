"""A file of records that notices every change to it: a JSON line each, sealed and chained.

    {"sequence": 8, "previous": "5c1…", …, "checksum": "e0a…"}

`sequence` counts from 1, `previous` is the checksum of the record before, and `checksum` is that of
all that stands before it in the line. So a record is complete in itself, and could as well be an
object of its own that is created if absent.

A lost last line would leave a sound chain. So a second file, the head, names the last record:

    1. the record is appended and synced
    2. the head is replaced by one that names it      only now does anybody rely on the record

After a crash, one record may stand behind the one that the head names. If it is whole, it is taken
up; if not, it was being written, nothing relied on it, and it is dropped. What else does not fit
was changed or lost, and is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from headgate.errors import JobError
from headgate.snapshot.files import sync
from headgate.spark.job.commit.output import write_atomically

Record = dict[str, Any]

START_AFRESH = "start afresh with another `sink.path` and `checkpoint`"
_CHECKSUM = b', "checksum": '


@dataclass(frozen=True, slots=True)
class Head:
    """The last record of a file: its number in the sequence, and its checksum."""

    sequence: int = 0
    checksum: str = ""


class RecordFile:
    """Sealed records in a file; only the process that holds the job's lock opens it.

    Guarantee: once `append` or `replace_all` has returned, the record survives any crash, and a
    later change to it is an error when the file is opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._head_path = path.with_suffix(".head")
        self._head = Head()
        self.lines = 0
        self.records = self._read()
        """What the file held when it was opened."""

    def append(self, content: Record) -> None:
        """Add a record."""
        line, head = self._seal_next(content)
        with self._path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._write_head(head)
        self.lines += 1

    def replace_all(self, content: Record) -> None:
        """Replace all records by one that stands for them, and is the next in their sequence."""
        line, head = self._seal_next({"replaces_all": True, **content})
        write_atomically(self._path, line)
        self._write_head(head)
        self.lines = 1

    def _seal_next(self, content: Record) -> tuple[bytes, Head]:
        sequence = self._head.sequence + 1
        line = seal_record({"sequence": sequence, "previous": self._head.checksum, **content})
        return line, Head(sequence, unseal_record(line)["checksum"])

    def _write_head(self, head: Head) -> None:
        write_atomically(self._head_path, json.dumps(asdict(head)) + "\n")
        self._head = head

    def _read(self) -> list[Record]:
        """Check and return all records; drop one that a crash left unfinished."""
        named = self._read_head()
        if not self._path.exists():
            self._path.touch()
            sync(self._path.parent)
        content = self._path.read_bytes()
        # what follows the last newline is half a record
        *lines, rest = content.split(b"\n")
        records: list[Record] = []
        whole_bytes = 0
        for number, line in enumerate(lines, 1):
            try:
                record = unseal_record(line)
            except ValueError as error:
                # behind the head, a power failure may leave a whole line with a hole in it
                if number == len(lines) and not rest and self._head == named:
                    break
                problem = f"was changed or damaged: {error}"
                raise self._build_error(f"{self._path}:{number}", problem) from None
            self._follow(number, record)
            records.append(record)
            whole_bytes += len(line) + 1
        self.lines = len(records)
        is_whole = whole_bytes == len(content)
        if self._head != named:
            # the record behind the head is whole: a crash came before the head was replaced
            if not (is_whole and records and _follows(records[-1], named)):
                raise self._build_mismatch(named)
            self._write_head(self._head)
        elif not is_whole:
            with self._path.open("r+b") as file:
                file.truncate(whole_bytes)
                os.fsync(file.fileno())
        return records

    def _follow(self, number: int, record: Record) -> None:
        """Move on to the record of a line, or raise a JobError if it does not come next."""
        sequence, before = record["sequence"], self._head
        # the first of a file may stand for all before it
        if not _follows(record, before) and not (number == 1 and "replaces_all" in record):
            where = f"follows record {before.sequence}" if number > 1 else "is the first"
            problem = f"record {sequence} {where}; lines were removed, doubled or replaced"
            raise self._build_error(f"{self._path}:{number}", problem)
        self._head = Head(sequence, record["checksum"])

    def _read_head(self) -> Head:
        try:
            head = Head(**json.loads(self._head_path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return Head()
        except (OSError, ValueError, TypeError) as error:
            raise self._build_error(self._head_path, f"was changed or damaged: {error}") from None
        return head

    def _build_mismatch(self, named: Head) -> JobError:
        name, last = self._head_path.name, self._head.sequence
        says = f"{name} names record {named.sequence}" if named.sequence else f"{name} is missing"
        problem = f"ends with record {last}, and {says}; one of the two was changed or lost"
        return self._build_error(self._path, problem)

    def _build_error(self, where: object, problem: str) -> JobError:
        return JobError(f"{where}: {problem}; restore it, or {START_AFRESH}")


def _follows(record: Record, head: Head) -> bool:
    return (record["sequence"], record["previous"]) == (head.sequence + 1, head.checksum)


def seal_record(content: Record) -> bytes:
    """Return a record as a line that ends in its checksum."""
    body = json.dumps(content).encode().removesuffix(b"}")
    return _add_checksum(body) + b"\n"


def unseal_record(line: bytes) -> Record:
    """Return the record of a sealed line, or raise a ValueError that says what is wrong.

    >>> unseal_record(seal_record({"batch": 7}))["batch"]
    7
    >>> unseal_record(seal_record({"batch": 7}).replace(b"7", b"8", 1))
    Traceback (most recent call last):
    ValueError: its checksum is another
    """
    body, checksum, _ = line.rpartition(_CHECKSUM)
    if not checksum and line.endswith(b"}"):
        raise ValueError("it has no checksum, or is from an earlier version of Headgate")
    if _add_checksum(body) != line.removesuffix(b"\n"):
        raise ValueError("its checksum is another")
    record: Record = json.loads(line)
    return record


def _add_checksum(body: bytes) -> bytes:
    digest = blake2b(body, digest_size=16).hexdigest()
    return body + _CHECKSUM + f'"{digest}"}}'.encode()
