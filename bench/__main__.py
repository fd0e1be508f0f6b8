"""Run benchmarks by name: `python -m bench [NAME ...] [--list]`; without a name, all of them.

Flags that a benchmark has (`python -m bench sweep --seed 3 --quick`) are the keywords of its
`cases`; others do not get them.

Exit status 1 where a check failed or a case could not run, 2 for bad usage. A target that was
missed is in the table and is not a failure: one run on a busy machine proves little.
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import bench
from bench.data import DataMissing
from bench.harness import Case, Measure, Row
from bench.report import line, save, table

FLAGS = ("seed", "quick", "cpu", "only")
RESULTS = Path(__file__).parent / "results"
HARNESS = {
    "__main__",
    "gpu_probe",
    "data",
    "exact_smoothing",
    "exact_solvers",
    "harness",
    "memory",
    "report",
    "sweep_least",
    "sweep_problems",
    "sweep_rows",
}


def names() -> list[str]:
    """The benchmarks there are: every module here that is not the harness itself."""
    return sorted({module.name for module in pkgutil.iter_modules(bench.__path__)} - HARNESS)


def run(
    name: str, cases: Callable[[], Iterable[Case | Measure]], folder: Path = RESULTS
) -> list[Row]:
    """Run the cases, print each as it finishes and all of them at the end, and write the JSON."""
    print(f"== {name}", flush=True)
    rows = []
    for row in _rows(name, cases):
        print(line(row), flush=True)
        rows.append(row)
    path = save(name, rows, folder)
    print(f"\n{table(rows)}\nwritten: {path.parent.name}/{path.name}\n", flush=True)
    return rows


def _rows(name: str, cases: Callable[[], Iterable[Case | Measure]]) -> Iterator[Row]:
    """Each case's row; one that raises becomes a failed row, and the others still run."""
    try:
        for case in cases():
            yield _row(case)
    except DataMissing as error:
        yield Row(name, "", failure=str(error))
    except Exception as error:
        yield _broken(name, error)


def _row(case: Case | Measure) -> Row:
    try:
        return case.run()
    except Exception as error:
        return _broken(case.name, error)


def _broken(name: str, error: Exception) -> Row:
    traceback.print_exception(error)
    return Row(name, "", failure=f"{type(error).__name__}: {error}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("bench", description="Benchmarks, side by side with peers.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which to run; all of them without one"
    )
    parser.add_argument("--list", action="store_true", help="only list the names")
    parser.add_argument("--seed", type=int, help="of shapes that are drawn (sweep)")
    parser.add_argument("--quick", action="store_true", help="in minutes (sweep)")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds of one thread (sweep)")
    parser.add_argument(
        "--only", action="append", metavar="OPERATION", help="again for more (sweep)"
    )
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(names()))
        return 0
    flags = {name: getattr(args, name) for name in FLAGS if getattr(args, name)}
    return _run_all(args.names or names(), parser, flags)


def _run_all(
    chosen: Sequence[str], parser: argparse.ArgumentParser, flags: Mapping[str, Any]
) -> int:
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        parser.error(
            f"no benchmark {', '.join(unknown)}; there are: {', '.join(names()) or 'none yet'}."
        )
    rows = [row for name in chosen for row in run(name, partial(_cases(name), **flags))]
    return int(any(row.failure for row in rows))


def _cases(name: str) -> Callable[..., Iterable[Case | Measure]]:
    """The cases of bench/NAME.py; it is imported when they are asked for, so that its errors are
    the run's."""

    def cases(**flags: Any) -> Iterable[Case | Measure]:
        found = importlib.import_module(f"bench.{name}").cases
        known = inspect.signature(found).parameters
        return found(**{flag: value for flag, value in flags.items() if flag in known})

    return cases


if __name__ == "__main__":
    sys.exit(main())
