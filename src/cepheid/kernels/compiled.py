"""Turns generated kernel source into compiled functions, cached on disk by content.

numba keeps its on-disk cache only for functions that live in real files, so each source text is
written once to a module named after its hash. Windows, thresholds and literals are arguments, never
text: a thousand queries of one shape share one file (docs/decisions/0002).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

_CALLED = ("processor", "scalar")
"""The modules of this folder whose functions a kernel may call."""


@dataclass(slots=True)
class KernelCounters:
    """How many distinct kernel sources this process has asked for, and how many it had to write."""

    loaded: int = 0
    written: int = 0


counters = KernelCounters()
_modules: dict[str, ModuleType] = {}


def load(source: str, called: tuple[str, ...] = _CALLED) -> ModuleType:
    """The module for a kernel source text; equal texts give the same module.

    Machine code holds what it calls in the `called` modules, which is thus part of what names it.
    """
    header, texts = _called(called)
    digest = hashlib.blake2b(
        f"{numba.__version__}|{texts}|{header}|{source}".encode(), digest_size=12
    ).hexdigest()
    name = f"cepheid_kernel_{digest}"
    module = _modules.get(name)
    if module is None:
        module = _modules[name] = _import(name, header + source)
        counters.loaded += 1
    return module


@lru_cache
def _called(names: tuple[str, ...]) -> tuple[str, str]:
    """The lines that import these modules, and the modules' own text."""
    lines = ["import numba", "import numpy as np"]
    lines += [f"from cepheid.kernels.{name} import *" for name in names]
    files = [Path(__file__).with_name(f"{name}.py") for name in names]
    return "\n".join(lines) + "\n\n", "".join(file.read_text("utf-8") for file in files)


def function(source: str, name: str) -> Callable[..., Any]:
    """One compiled function of a kernel source text."""
    found: Callable[..., Any] = getattr(load(source), name)
    return found


def cache_folder() -> Path:
    """Where kernel sources and their machine code are kept; CEPHEID_CACHE overrides."""
    chosen = os.environ.get("CEPHEID_CACHE")
    candidates = [Path(chosen)] if chosen else []
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if home:
        candidates.append(
            Path(home) / (".cache/cepheid" if not home.endswith("cache") else "cepheid")
        )
    candidates.append(Path(tempfile.gettempdir()) / f"cepheid-{os.getuid()}")
    for folder in candidates:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and _is_ours(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="cepheid-"))


def _is_ours(folder: Path) -> bool:
    """Code is loaded from here, so nobody else may be able to put any into it."""
    facts = folder.stat()
    return facts.st_uid == os.getuid() and not facts.st_mode & 0o022


def _import(name: str, text: str) -> ModuleType:
    path = cache_folder() / f"{name}.py"
    if not path.exists() or path.read_text("utf-8") != text:
        # Written beside and renamed: two workers may want the same kernel at once.
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".py.part")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(temporary).replace(path)
        counters.written += 1
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
