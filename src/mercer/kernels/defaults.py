"""The kernel meant by None, a name, a function or a kernel of scikit-learn's processes; and kernels
with all bandwidths changed by a factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mercer.inputs import Array, Items, Table, table
from mercer.kernels.base import Kernel
from mercer.kernels.domain import bounded, check_rows
from mercer.kernels.functions import function_kernel
from mercer.kernels.histograms import AdditiveChi2, Chi2
from mercer.kernels.named import GAUSSIAN, NAMES, PARAMETERS, NamedKernel, beside
from mercer.kernels.named import spread as spread
from mercer.kernels.params import substitute
from mercer.kernels.translated import Translation, is_process_kernel, translated

# what becomes a kernel when there are rows: a name with parameters, a kernel of scikit-learn's
# processes, or a function
KernelToBe: TypeAlias = NamedKernel | Translation | Callable[..., Any]


def is_precomputed(kernel: object) -> bool:
    """Whether rows are those of a kernel matrix.

    >>> is_precomputed("precomputed"), is_precomputed("rbf"), is_precomputed(3)
    (True, False, False)
    """
    return isinstance(kernel, str) and kernel == "precomputed"


def is_open(kernel: object) -> bool:
    """Whether this stands for a Gaussian whose bandwidth is scaled to the rows.

    >>> is_open(None), is_open("rbf"), is_open("linear"), is_open(NamedKernel("rbf", gamma=1.0))
    (True, True, False, False)
    """
    if isinstance(kernel, NamedKernel):
        return kernel.gamma is None and kernel.name in GAUSSIAN
    return kernel is None or (isinstance(kernel, str) and kernel in GAUSSIAN)


def kernel_of(model: Any) -> Kernel | KernelToBe | str | None:
    """The kernel that a model was given, together with its gamma, degree and coef0.

    >>> from types import SimpleNamespace
    >>> resolve(kernel_of(SimpleNamespace(kernel="chi2", gamma=2.0)), [[1.0]])
    Chi2(gamma=2.0)
    """
    kernel = model.kernel
    given = {n: v for n in PARAMETERS if (v := getattr(model, n, None)) is not None}
    if given and getattr(model, "lift", None) is not None:
        raise ValueError(
            f"{', '.join(given)} is of kernels given by name; a lift has its own parameters, set them there."
        )
    if given and not (kernel is None or isinstance(kernel, str)):
        raise ValueError(beside(kernel, given))
    if is_process_kernel(kernel):
        return translated(kernel)
    if not given or is_precomputed(kernel):
        return kernel
    return _named("rbf" if kernel is None else kernel, **given)


def _named(name: str, precomputed: bool = False, **parameters: Any) -> NamedKernel:
    found = NamedKernel(name, **parameters)
    return found if name in NAMES else _refuse(name, precomputed)


def _refuse(kernel: object, precomputed: bool) -> Any:
    names = ", ".join((*NAMES, "precomputed") if precomputed else NAMES)
    raise ValueError(f"kernel must be a kernel, None or one of {names}, got {what_came(kernel)}.")


def resolve(
    kernel: Kernel | KernelToBe | str | None,
    X: Any,
    weight: Array | None = None,
    *,
    given: bool = False,
) -> Kernel:
    """The kernel itself, or the one that None ("rbf"), a name, a function or a kernel of
    scikit-learn's processes stands for, for the rows X and their weights.

    given : whether "precomputed" would do as well, for the sentence where it is none of them

    >>> resolve("rbf", [[2.0, 0.0], [0.0, 2.0]])
    Gaussian()
    """
    if isinstance(kernel, Kernel):
        rows = Table(X) if isinstance(X, Items) else X
        return kernel.settled(rows) if isinstance(rows, Table) else kernel
    if kernel is None or isinstance(kernel, str):
        kernel = _named("rbf" if kernel is None else kernel, given)
    if isinstance(kernel, NamedKernel):
        return kernel.at(X, weight)
    if is_process_kernel(kernel):
        kernel = translated(kernel)
    if isinstance(kernel, Translation):
        return kernel.at(table(X).width)
    if callable(kernel) and not isinstance(kernel, type):
        return function_kernel(kernel, table(X))
    return _refuse(kernel, given)


def _meant(kernel: object) -> Kernel | None:
    """The kernel, as far as it is known without rows."""
    name = kernel.name if isinstance(kernel, NamedKernel) else kernel
    if isinstance(name, str):
        return {"chi2": Chi2(), "additive_chi2": AdditiveChi2()}.get(name)
    return kernel if isinstance(kernel, Kernel) else None


def takes_positive(kernel: object) -> bool:
    """Whether it is a kernel of numbers >= 0.

    >>> takes_positive("chi2"), takes_positive("rbf")
    (True, False)
    """
    return (found := _meant(kernel)) is not None and bounded(found)


def check_domain(kernel: object, rows: Table) -> None:
    """Refuse rows for which the kernel is not meant, by row and column."""
    if (found := _meant(kernel)) is not None:
        check_rows(found, rows)


def check_paths(model: Any, params: dict[str, Any]) -> None:
    """Refuse parameters of a kernel where there is none yet to have them, as in a search."""
    kernel = params.get("kernel", getattr(model, "kernel", None))
    inner = [name for name in params if name.startswith("kernel__")]
    if inner and not hasattr(kernel, "set_params"):
        raise ValueError(
            f"{inner[0]} is a parameter of a kernel, but kernel={kernel!r} is none that has parameters; give one, as "
            f"{type(model).__name__}(kernel=Gaussian()), or set gamma instead."
        )


def what_came(kernel: object) -> str:
    """In a sentence, in place of a kernel.

    >>> from mercer.kernels import Gaussian
    >>> what_came(Gaussian), what_came("gauss")
    ('the class Gaussian: write Gaussian()', "'gauss'")
    """
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        return f"the class {kernel.__name__}: write {kernel.__name__}()"
    return repr(kernel)


def bandwidths(kernel: Any) -> list[str]:
    """The paths of the bandwidths in an expression.

    >>> from mercer.kernels import Gaussian, Linear
    >>> bandwidths(2 * Gaussian((1.0, 2.0)) + Linear())
    ['terms__0__kernel__bandwidth__0', 'terms__0__kernel__bandwidth__1']
    """
    return (
        [p for p in kernel.parameters() if "bandwidth" in p.split("__")[-2:]]
        if isinstance(kernel, Kernel)
        else []
    )


def scaled(kernel: Kernel, factor: float) -> Any:
    """The expression with every bandwidth multiplied.

    >>> from mercer.kernels import Gaussian, Linear
    >>> scaled(2 * Gaussian(3.0) + Linear(), 2.0)
    2.0 * Gaussian(bandwidth=6.0) + Linear()
    """
    paths = set(bandwidths(kernel))
    return substitute(kernel, lambda path, v: v * factor if path in paths else v)
