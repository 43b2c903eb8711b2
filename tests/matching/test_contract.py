"""Every index keeps every promise of the contract."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import pytest

from headgate.errors import HeadgateError
from headgate.matching import KINDS, Index, Matches, ScanIndex, get_index_class
from headgate.queries import Query
from headgate.schema import Stream
from headgate.testing import CONTRACT, check_index
from headgate.testing.contract import Claim


@pytest.mark.parametrize("claim", CONTRACT, ids=lambda claim: claim.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_contract(kind: str, claim: Claim) -> None:
    """The claim holds for the index."""
    claim(get_index_class(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_help_shows_the_contract(kind: str) -> None:
    for name in ("build", "match", "match_one", "match_chunks", "insert", "locate", "describe"):
        assert inspect.getdoc(getattr(get_index_class(kind), name)), name


class Forgetful(ScanIndex):
    """Loses the last query of a build."""

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        return super().build(stream, queries[:-1])


class Stubborn(ScanIndex):
    """Never removes anything."""

    def remove(self, query_id: str) -> None:
        del query_id


class Silent(ScanIndex):
    """Hides what it could not read."""

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        return (replace(chunk, errors={}) for chunk in super().match_chunks(events))


@pytest.mark.parametrize("broken", [Forgetful, Stubborn, Silent])
def test_the_contract_can_fail(broken: type[Index]) -> None:
    """An index that breaks a promise is caught."""
    with pytest.raises((AssertionError, HeadgateError)):
        check_index(broken)
