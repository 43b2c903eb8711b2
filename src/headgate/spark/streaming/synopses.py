"""What the continuous queries of a job store, on the disk: a file for each of the last batches.

    state/synopses/7    {"checksum": …, "states": [{"id": …, "definition": …, "bytes": 120}, …]}
                        and then the states, one behind the other

A file is there, whole and synced, before the log says that its batch is finished, and the log has
its checksum. So after a crash what is stored is just what the finished batches have given: a batch
that is played again meets the state that it met before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from headgate.errors import JobError
from headgate.snapshot.files import link_or_copy, sync
from headgate.spark.streaming.output import make_directory
from headgate.spark.streaming.standing import Standing

Key = tuple[str, str]
"""The id of a query and its definition."""


class Synopses:
    """The files of states in a directory; those of the last finished batch and the next are kept.

    Guarantee: what `write` or `again` has returned from is found by `read` after any crash.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, batch: int, states: Mapping[Standing, bytes]) -> str:
        """Have the states after a batch on the disk; returns their checksum."""
        entries = [
            {"id": one.id, "definition": one.definition, "bytes": len(state)}
            for one, state in states.items()
        ]
        checksum = _checksum(entries, b"".join(states.values()))
        header = json.dumps({"checksum": checksum, "states": entries})
        make_directory(self._directory)
        draft = self._directory / f".{batch}"
        with draft.open("wb") as file:
            file.write(header.encode() + b"\n")
            file.writelines(states.values())
        sync(draft)
        self._place(draft, batch)
        return checksum

    def again(self, batch: int, before: int) -> None:
        """The states after a batch are those after one before it."""
        draft = self._directory / f".{batch}"
        with suppress(FileNotFoundError):
            draft.unlink()
        link_or_copy(self._directory / str(before), draft)
        self._place(draft, batch)

    def read(self, batch: int, checksum: str) -> dict[Key, bytes]:
        """The states after a batch; a JobError where they are not what the log tells of."""
        path = self._directory / str(batch)
        try:
            header, _, content = path.read_bytes().partition(b"\n")
            told = json.loads(header)
            entries = told["states"]
            if not checksum == told["checksum"] == _checksum(entries, content):
                raise ValueError("its checksum is another")
        except FileNotFoundError:
            raise _lost(path, "is gone") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise _lost(path, f"was changed or damaged ({error})") from None
        found, start = {}, 0
        for entry in entries:
            end = start + entry["bytes"]
            found[entry["id"], entry["definition"]] = content[start:end]
            start = end
        return found

    def forget(self, before: int) -> None:
        """Remove the files of batches before this one, which no start will ask for."""
        if self._directory.is_dir():
            for name in os.listdir(self._directory):
                if name.lstrip(".").isdigit() and int(name.lstrip(".")) < before:
                    (self._directory / name).unlink()

    def _place(self, draft: Path, batch: int) -> None:
        os.replace(draft, self._directory / str(batch))
        sync(self._directory)


def _checksum(entries: list[dict[str, Any]], content: bytes) -> str:
    digest = blake2b(json.dumps(entries).encode(), digest_size=16)
    digest.update(content)
    return digest.hexdigest()


def _lost(path: Path, what: str) -> JobError:
    return JobError(
        f"{path}: what the continuous queries stored {what}; bring it back, "
        "or begin anew with another `sink.path` and `checkpoint`"
    )
