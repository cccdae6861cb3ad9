"""The house's laws: imports point one way, heavy libraries have one door, the docs are true."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "cepheid"
ORACLE = ROOT / "tests" / "oracle"

# From the user's hands down to the words everybody shares. A name may import the names of the rows
# below its own; names in one row are strangers.
LAYERS = [
    "cli console testing",
    "manager",
    "delivery",
    "agents generate notify report",
    "session",
    "hosts",
    "acquisition",
    "planner",
    "languages optimizer",
    "statistics",
    "algebra kernels",
    "model",
]
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row.split()}

# Each heavy library has one door: the files that may import it.
DOORS = {"pyspark": "hosts/spark_*.py", "numba": "kernels/**/*.py"}

FORBIDDEN_MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}
FORBIDDEN_FUNCTIONS = {"eval", "exec"}
LONGEST_FILE = 600

SOURCES = sorted(PACKAGE.rglob("*.py"))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Names of all modules imported anywhere below, also inside functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                # `from cepheid import planner` imports a layer as much as `import cepheid.planner`.
                yield from (f"{module}.{alias.name}" for alias in names)


def modules_loaded_by(tree: ast.Module) -> Iterator[str]:
    """Like `imported_modules`, leaving out what only the type checker reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    yield from imported_modules(tree)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def imports_that_point_up(name: str, tree: ast.AST) -> list[str]:
    """Imports of `cepheid` modules in the file `name` that its layer does not allow."""
    here = name.split("/")[0].removesuffix(".py")
    wrong = []
    for module in imported_modules(tree):
        package, _, rest = module.partition(".")
        there = rest.split(".")[0]
        if package != "cepheid" or there == here:
            continue
        if there not in RANK and RANK[here] == 0:
            continue  # the top row may use the public names, as users do
        if there not in RANK or RANK[there] <= RANK[here]:
            wrong.append(f"{name} imports {module}")
    return wrong


def forbidden_uses(name: str, tree: ast.AST) -> list[str]:
    """Calls that run text as code, and modules that load code from data."""
    wrong = [
        f"{name} imports {module}"
        for module in imported_modules(tree)
        if module.split(".")[0] in FORBIDDEN_MODULES
    ]
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) if word in FORBIDDEN_FUNCTIONS:
                wrong.append(f"{name}:{node.lineno} uses {word}")
            case ast.Attribute(value=ast.Name(id="builtins"), attr=word) if (
                word in FORBIDDEN_FUNCTIONS
            ):
                wrong.append(f"{name}:{node.lineno} uses builtins.{word}")
    return wrong


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def inner_sources() -> list[Path]:
    """All files that belong to a layer: the package's doors stand above them all."""
    return [path for path in SOURCES if relative(path) not in ("__init__.py", "__main__.py")]


def test_every_module_belongs_to_a_layer() -> None:
    names = {relative(path).split("/")[0].removesuffix(".py") for path in inner_sources()}
    assert names <= RANK.keys(), "place the new folder in LAYERS"


def test_imports_point_down() -> None:
    wrong = [fault for path in inner_sources() for fault in _layer_faults(path)]
    assert not wrong, "\n".join(wrong)


def _layer_faults(path: Path) -> list[str]:
    return imports_that_point_up(relative(path), parsed(path))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("algebra/pattern.py", "import cepheid.planner.plan"),
        ("algebra/pattern.py", "from cepheid.kernels import stacks"),
        ("model/events.py", "def late():\n    from cepheid import session"),
        ("hosts/spark_scan.py", "from cepheid import detect"),
    ],
)
def test_an_import_that_points_up_is_seen(name: str, source: str) -> None:
    assert imports_that_point_up(name, ast.parse(source))


@pytest.mark.parametrize("library", sorted(DOORS))
def test_heavy_libraries_stay_behind_their_door(library: str) -> None:
    allowed = set(PACKAGE.glob(DOORS[library]))
    wrong = [
        relative(path)
        for path in SOURCES
        if path not in allowed
        and any(module.split(".")[0] == library for module in modules_loaded_by(parsed(path)))
    ]
    assert not wrong, f"{library} is imported outside {DOORS[library]}: {wrong}"


@pytest.mark.parametrize("library", sorted(DOORS))
def test_importing_the_package_loads_no_heavy_library(library: str) -> None:
    program = f"import sys, cepheid; print({library!r} in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.strip() == "False"


def test_the_oracle_knows_only_algebra_and_model() -> None:
    """What judges the engine may share nothing with it but the words of the question."""
    sources = [path for path in sorted(ORACLE.glob("*.py")) if not path.name.startswith("test_")]
    assert sources, "the oracle is not where this test looks for it"
    # Inputs may be written down in the one-line notation of cepheid.testing.
    allowed = ("cepheid.algebra.", "cepheid.model.", "cepheid.testing.stream", "tests.oracle.")
    wrong = [
        f"{path.name} imports {module}"
        for path in sources
        for module in imported_modules(parsed(path))
        if module.split(".")[0] in {"cepheid", "tests"} and not module.startswith(allowed)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_text_is_run_as_code() -> None:
    wrong = [fault for path in SOURCES for fault in forbidden_uses(relative(path), parsed(path))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    ["eval('1')", "run = exec", "import builtins\nbuiltins.eval('1')", "from pickle import loads"],
)
def test_text_run_as_code_is_seen(source: str) -> None:
    assert forbidden_uses("model/events.py", ast.parse(source))


def test_no_file_is_too_long() -> None:
    lengths = {
        relative(path): len(path.read_text("utf-8").splitlines())
        for path in [*SOURCES, *PACKAGE.rglob("*.lark")]
    }
    long = {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    assert not long, f"more than {LONGEST_FILE} lines; split by idea: {long}"


def documented_names() -> dict[str, str]:
    """What the block of docs/ARCHITECTURE.md that starts with `src/cepheid/` lists."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
    block = re.search(r"^```text\nsrc/cepheid/\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block, "docs/ARCHITECTURE.md has no block that starts with src/cepheid/"
    entries = [line.split(maxsplit=1) for line in block[1].splitlines() if line.strip()]
    bare = [entry[0] for entry in entries if len(entry) < 2]
    assert not bare, f"a sentence is missing for {bare}"
    return dict(entries)


def test_the_documented_folders_are_the_real_ones() -> None:
    folders = {f"{relative(path.parent)}/" for path in PACKAGE.rglob("*") if _is_content(path)} - {
        "./"
    }
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    assert set(documented_names()) == folders | modules


def _is_content(path: Path) -> bool:
    """A file that belongs to the package, not a cache some tool left in it."""
    parts = path.relative_to(PACKAGE).parts
    return path.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts)
