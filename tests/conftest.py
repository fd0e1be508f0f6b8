"""Threads of a worker, Hypothesis profiles, and suites that run only with `./do test --all`; the
summary says what was left out and why."""

import os
import signal
from collections import Counter

import pytest
from hypothesis import settings

# Before NumPy is loaded: threads of several workers would wait for each other's cores.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if WORKERS > 1:
    for library in ("OPENBLAS", "OMP", "MKL"):
        share = max(1, (os.cpu_count() or 1) // WORKERS)
        os.environ.setdefault(f"{library}_NUM_THREADS", str(share))

# What a shell starts in the background ignores Ctrl-C, and so does whatever that starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SUITES = ("long", "browser", "gpu")
ALL = os.environ.get("MERCER_TEST_ALL") == "1"

settings.register_profile("short", max_examples=15, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=200, deadline=None, print_blob=True)
settings.load_profile("long" if ALL else "short")


def pytest_collection_modifyitems(config, items):
    """Skip the suites that were not asked for, by --all or by name in -m."""
    left_out = [] if ALL else [suite for suite in SUITES if suite not in config.option.markexpr]
    for item in items:
        suite = next((suite for suite in left_out if item.get_closest_marker(suite)), None)
        if suite:
            item.add_marker(pytest.mark.skip(reason=f"suite {suite}"), append=False)


def pytest_terminal_summary(terminalreporter):
    """One line for the suites left out and one for each other reason."""
    skipped = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    suites = [
        f"{name} ({_tests(skipped.pop(f'suite {name}'))})"
        for name in SUITES
        if f"suite {name}" in skipped
    ]
    if suites:
        terminalreporter.write_line(f"skipped: {', '.join(suites)}: ./do test --all runs them")
    for reason, count in skipped.items():
        terminalreporter.write_line(f"skipped: {_tests(count)}: {reason}")


def _reason(report):
    """What pytest.skip was told; a module that could not be imported is named."""
    message = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return message.removeprefix("Skipped: ")


def _tests(count):
    return f"{count} test" if count == 1 else f"{count} tests"
