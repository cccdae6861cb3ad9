"""How long a user waits for the first result of `cepheid run` on a small file.

Timed: a whole process, from its start to its end, with the kernel in the on-disk cache. Beside it:
a Python that starts, imports the libraries such a run cannot do without, and ends.
"""

import csv
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import cepheid
from benchmarks.harness import Answer, Clock, Contender, interleave, time_ratio
from benchmarks.micro.baselines import NumpySequence
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.workload import arrow_events, columns, query

ROWS = 1_000
WINDOW = 300
DOMAIN = 5

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

# What reading a CSV, parsing a query, running a kernel and writing a table need.
LIBRARIES = ("cepheid", "lark", "numba", "numpy", "pyarrow", "pyarrow.csv", "rich.table", "typer")


def run(options: Options) -> Report:
    """Measure `cepheid run --host process` on a CSV of 1,000 rows."""
    report = Report("first_result", "first result of cepheid run, kernel cached", options.quick)
    report.parameters |= {"rows": ROWS, "window": WINDOW, "libraries": LIBRARIES}
    with tempfile.TemporaryDirectory() as folder:
        contenders = [
            Contender("Python and imports", ROWS, lambda: start_python),
            Contender("cepheid run", ROWS, partial(prepare_run, Path(folder))),
        ]
        runs = report.keep(
            "first result",
            interleave(
                contenders, options.times(9), warmups=2, tree=True, expected=expected_matches()
            ),
        )
    ratio = time_ratio(runs["cepheid run"], runs["Python and imports"], Clock.WALL)
    report.claim("cepheid run / Python start and imports", 1.5, ratio, at_most=True)
    return report


def expected_matches() -> int:
    """The number of matches NumPy finds in the same rows."""
    sequence = NumpySequence(WINDOW)
    events = columns(arrow_events(ROWS, DOMAIN))
    return sum(len(block[0]) for block in sequence.feed(events))


def start_python() -> Answer:
    """Start Python, import, end."""
    script = "".join(f"import {name}\n" for name in LIBRARIES)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, env=environment())
    return None


def prepare_run(folder: Path) -> partial[Answer]:
    """Write query and events, and return what runs the command and counts its result."""
    query_file, events_file, result = folder / "q.sase", folder / "events.csv", folder / "out.csv"
    query_file.write_text(query(WINDOW), encoding="utf-8")
    rows = arrow_events(ROWS, DOMAIN)[0].to_pylist()
    with events_file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    result.unlink(missing_ok=True)
    return partial(run_command, query_file, events_file, result)


def run_command(query_file: Path, events_file: Path, result: Path) -> Answer:
    """Run the command line as a user would."""
    command = [str(Path(sys.executable).with_name("cepheid")), "run", str(query_file)]
    command += ["--events", str(events_file), "--host", "process", "--out", str(result)]
    subprocess.run(command, check=True, timeout=120, env=environment(), capture_output=True)
    with result.open(newline="", encoding="utf-8") as found:
        return sum(1 for _ in csv.reader(found)) - 1


def environment() -> dict[str, str]:
    """Where the package is found, installed or not; bytecode is kept, as for installed packages."""
    source = str(Path(cepheid.__file__).parent.parent)
    kept = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    return {**kept, "PYTHONPATH": source}
