"""The cache directory of a package's kernels depends on every source that enters them."""

from __future__ import annotations

import pytest

from headgate.jit import cache


def test_sources_include_called_kernels_and_imported_constants() -> None:
    sources = cache._sources("benchmarks.rivals.kernels")
    called = {module for module in sources if module.startswith("headgate.matching.asc.")}
    assert any(cache._KERNEL.search(sources[module]) for module in called)
    assert "headgate.snapshot.arrays.atoms" in cache._sources("headgate.matching.keyed")
    assert "headgate.jit.intrinsics" in sources


def test_a_changed_source_changes_the_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = cache._cache_directory.__wrapped__("headgate.sharing")
    read = cache._read

    def change(module: str) -> bytes | None:
        source = read(module)
        return source and source + b"# changed"

    monkeypatch.setattr(cache, "_read", change)
    after = cache._cache_directory.__wrapped__("headgate.sharing")
    assert before is not None
    assert after is not None
    assert before != after
