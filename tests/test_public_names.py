"""What `import cepheid` offers."""

from __future__ import annotations

import pytest

import cepheid


@pytest.mark.parametrize("name", [n for n in cepheid.__all__ if n != "WorkloadControl"])
def test_public_names_are_there(name: str) -> None:
    assert getattr(cepheid, name).__name__ == name


def test_the_control_of_a_workload_on_spark_is_there() -> None:
    assert cepheid.WorkloadControl.__name__ == "WorkloadControl"


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute `detekt`"):
        cepheid.detekt  # noqa: B018 (asking is the test)


@pytest.mark.parametrize(
    ("kind", "code", "call"),
    [
        (cepheid.QueryError, "unknown-unit", lambda: cepheid.compile("EVENT A x WITHIN 5 ours")),
        (
            cepheid.DataError,
            "unknown-column",
            lambda: cepheid.detect(cepheid.detect([], "EVENT A x"), "EVENT A x WHERE x.v = 1"),
        ),
        (
            cepheid.OptionError,
            "unknown-option",
            lambda: cepheid.detect([], "EVENT A x", lateniss=3),
        ),
        (
            cepheid.StateError,
            "not-a-snapshot",
            lambda: cepheid.Detector.restore("EVENT A x", b"no snapshot"),
        ),
    ],
)
def test_mistakes_are_told_apart(kind, code, call) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, cepheid.CepheidError)
    assert caught.value.code == code
    assert caught.value.message in str(caught.value)
