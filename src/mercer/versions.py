"""What a report of a problem needs: versions, threads, and the libraries of linear algebra."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "narwhals", "safetensors", "threadpoolctl")
OPTIONAL = (
    "pandas",
    "polars",
    "pyarrow",
    "plotly",
    "typer",
    "rich",
    "dask",
    "distributed",
    "torch",
    "triton",
)


def show_versions() -> None:
    """Print the versions of Python, Mercer and the packages it uses, threads, and linear algebra.

    Paste it into a report of a problem: nothing in it names a folder, a user or a machine.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    system
        python: 3...
        ...
    """
    for title, rows in sections().items():
        print(title)
        for name, value in rows.items():
            print(f"    {name}: {value}")


def sections() -> dict[str, dict[str, str]]:
    """The lines of `show_versions`, by title."""
    from mercer import __version__
    from mercer.ops.threads import n_threads

    found = {name: _version(name) for name in (*NEEDED, *OPTIONAL)}
    packages = {name: v for name, v in found.items() if v != "none" or name in NEEDED}
    return {
        "system": {
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "cores": str(os.cpu_count()),
        },
        "packages": {"mercer": __version__, **packages},
        "threads": {"mercer": str(n_threads()), **_libraries()},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _libraries() -> dict[str, str]:
    """The libraries that compute in threads, once NumPy and SciPy are there."""
    import scipy.linalg  # noqa: F401  which loads its own
    from threadpoolctl import threadpool_info

    told = {}
    for i, library in enumerate(threadpool_info()):
        name = f"{library['internal_api']} {i + 1}"
        told[name] = f"{library.get('version') or 'no version'}, {library['num_threads']} threads"
    return told
