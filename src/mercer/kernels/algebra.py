"""The algebra of kernels: sums, products, powers, exp, and maps around a kernel; one line of
formula each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add, mul
from typing import Any, ClassVar

from mercer.invariants import Each, Said, Text, Whole
from mercer.kernels.base import Kernel, positive, whole
from mercer.kernels.params import plain
from mercer.store import register


def _flat(terms: Any, node: type[Any], name: str) -> tuple[Kernel, ...]:
    """Nested sums in a sum (products in a product) are one."""
    if not isinstance(terms, tuple) or not terms or not all(isinstance(t, Kernel) for t in terms):
        raise ValueError(f"{name} takes one or more kernels, got {terms!r}.")
    return tuple(t for k in terms for t in (k.terms if isinstance(k, node) else (k,)))


def _kernel(k: Any, name: str) -> None:
    if not isinstance(k, Kernel):
        raise ValueError(f"{name} takes a kernel, got {k!r}.")


@register("kernels.Sum")
class Sum(Kernel):
    """k1 + k2 + ...

    Parameters
    ----------
    terms : tuple of Kernel
        One or more; a sum among them gives its own terms.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> (Gaussian() + Linear() + 1)([[1.0]])
    array([[3.]])
    """

    terms: tuple[Kernel, ...]
    precedence: ClassVar[int] = 1

    def check(self) -> None:
        self.terms = _flat(self.terms, Sum, "Sum")

    def on(self, p: Any) -> Any:
        return reduce(add, (k.on(p) for k in self.terms))

    def __repr__(self) -> str:
        return " + ".join(k.inside(1) for k in self.terms)


@register("kernels.Product")
class Product(Kernel):
    """k1 k2 ...

    Parameters
    ----------
    terms : tuple of Kernel
        One or more; a product among them gives its own terms.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> (Gaussian() * Linear())([[2.0]])
    array([[4.]])
    """

    terms: tuple[Kernel, ...]
    precedence: ClassVar[int] = 2

    def check(self) -> None:
        self.terms = _flat(self.terms, Product, "Product")

    def on(self, p: Any) -> Any:
        return reduce(mul, (k.on(p) for k in self.terms))

    def __repr__(self) -> str:
        first, *others = self.terms
        head = (
            repr(first) if isinstance(first, Scale) else first.inside(3)
        )  # 2 * k * l is (2 * k) * l
        return " * ".join([head, *(k.inside(3) for k in others)])


@register("kernels.Scale")
class Scale(Kernel):
    """c k, c >= 0

    Parameters
    ----------
    factor : float
    kernel : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (3 * Linear())([[2.0]])
    array([[12.]])
    """

    factor: float
    kernel: Kernel
    precedence: ClassVar[int] = 2

    def check(self) -> None:
        _kernel(self.kernel, "Scale")
        self.factor = positive(self.factor, "the scale of a kernel", zero=True)

    def on(self, p: Any) -> Any:
        return self.factor * self.kernel.on(p)

    @classmethod
    def _upgraded(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Files of before call the factor `by`."""
        return {"factor" if name == "by" else name: value for name, value in fields.items()}

    def __repr__(self) -> str:
        return f"{self.factor!r} * {self.kernel.inside(3)}"


@register("kernels.Power")
class Power(Kernel):
    """k^degree, degree an integer >= 0

    Parameters
    ----------
    kernel : Kernel
    degree : int
        The power; others than whole ones need not be positive semidefinite.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() ** 2)([[3.0]])
    array([[81.]])
    """

    kernel: Kernel
    degree: int
    precedence: ClassVar[int] = 4

    def check(self) -> None:
        _kernel(self.kernel, "Power")
        self.degree = whole(
            self.degree, "the power of a kernel (others need not be positive semidefinite)"
        )

    def on(self, p: Any) -> Any:
        return self.kernel.on(p) ** self.degree

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)} ** {self.degree}"


@register("kernels.Exp")
class Exp(Kernel):
    """exp(k)

    Parameters
    ----------
    kernel : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Exp(Linear())([[0.0]])
    array([[1.]])
    """

    kernel: Kernel

    def check(self) -> None:
        _kernel(self.kernel, "exp")

    def on(self, p: Any) -> Any:
        return p.xp.exp(self.kernel.on(p))

    def __repr__(self) -> str:
        return f"exp({self.kernel!r})"


def exp(k: Kernel) -> Exp:
    """exp(k(x, z)) as a kernel.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> exp(Linear())([[0.0], [1.0]])
    array([[1.        , 1.        ],
           [1.        , 2.71828183]])
    """
    return Exp(k)


@register("kernels.Series")
class Series(Kernel):
    """a0 + a1 k + a2 k^2 + ..., coefficients >= 0

    Parameters
    ----------
    kernel : Kernel
    coefficients : tuple of float

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().compose([1.0, 0.0, 2.0])([[1.0]])
    array([[3.]])
    """

    kernel: Kernel
    coefficients: tuple[float, ...]

    def check(self) -> None:
        _kernel(self.kernel, "compose")
        if not isinstance(self.coefficients, tuple) or not self.coefficients:
            raise ValueError(f"compose takes one or more coefficients, got {self.coefficients!r}.")
        self.coefficients = tuple(
            positive(a, "a coefficient of compose", zero=True) for a in self.coefficients
        )

    def on(self, p: Any) -> Any:
        k = self.kernel.on(p)
        return reduce(lambda high, a: high * k + a, reversed(self.coefficients))

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)}.compose({list(self.coefficients)!r})"


def _name(f: Any) -> str:
    return getattr(f, "__name__", None) or repr(f)


def _function(f: Any, name: str) -> None:
    if not callable(f):
        raise ValueError(f"{name} takes a function of rows, got {f!r}.")


@register("kernels.Weighted")
class Weighted(Kernel):
    """f(x) k(x, z) f(z)

    Parameters
    ----------
    kernel : Kernel
    f : callable
        A function of rows (n, d) that gives (n,).

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().weighted(lambda X: X[:, 0])([[2.0]])
    array([[16.]])
    """

    kernel: Kernel
    f: Callable[[Any], Any]

    must = dict(f=Said())

    def check(self) -> None:
        _kernel(self.kernel, "Weighted")
        _function(self.f, "weighted")

    def on(self, p: Any) -> Any:
        return p.rows.of(self.f) * self.kernel.on(p) * p.cols.of(self.f)

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)}.weighted({_name(self.f)})"


@register("kernels.Warped")
class Warped(Kernel):
    """k(f(x), f(z))

    Parameters
    ----------
    kernel : Kernel
    f : callable
        A function of rows (n, d) that gives rows (n, d'), row by row: it sees a few at a time.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().warped(lambda X: X**2)([[2.0]])
    array([[16.]])
    """

    kernel: Kernel
    f: Callable[[Any], Any]

    must = dict(f=Said())

    def check(self) -> None:
        _kernel(self.kernel, "Warped")
        _function(self.f, "warped")

    def on(self, p: Any) -> Any:
        return self.kernel.on(p.warp(self.f))

    @property
    def takes_items(self) -> bool:
        return True  # f decides what it reads

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)}.warped({_name(self.f)})"


@register("kernels.Normalized")
class Normalized(Kernel):
    """k(x, z) / sqrt(k(x, x) k(z, z)), and 0 where k(x, x) = 0

    Parameters
    ----------
    kernel : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalized()([[3.0], [0.0]])
    array([[1., 0.],
           [0., 0.]])
    """

    kernel: Kernel

    def check(self) -> None:
        _kernel(self.kernel, "Normalized")

    def on(self, p: Any) -> Any:
        scale = p.xp.sqrt(self.kernel.on(p.rows)) * p.xp.sqrt(self.kernel.on(p.cols))
        return p.xp.ratio(self.kernel.on(p), scale)

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)}.normalized()"


@register("kernels.OnColumns")
class OnColumns(Kernel):
    """k(x_S, z_S) for chosen columns S, by position or name

    Parameters
    ----------
    kernel : Kernel
    columns : tuple of int or str

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().on_columns([1])([[1.0, 2.0]])
    array([[4.]])
    """

    kernel: Kernel
    columns: tuple[int | str, ...]
    static: ClassVar[tuple[str, ...]] = ("columns",)

    def check(self) -> None:
        _kernel(self.kernel, "OnColumns")
        columns = (self.columns,) if isinstance(self.columns, int | str) else self.columns
        columns = tuple(map(plain, columns)) if isinstance(columns, Iterable) else ()
        if not columns or not all(
            isinstance(c, int | str) and not isinstance(c, bool) for c in columns
        ):
            raise ValueError(f"on_columns takes positions or names, got {self.columns!r}.")
        self.columns = columns

    must = dict(
        columns=Each(Whole(-(1 << 31), 1 << 31) | Text())
    )  # the rows that come are asked whether they have them

    def on(self, p: Any) -> Any:
        return self.kernel.on(p.pick(self.columns))

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)}.on_columns({list(self.columns)!r})"


def terms_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """The terms whose sum the kernel is, a factor before a sum multiplied out; else the kernel.

    >>> from mercer.kernels import Gaussian, Linear
    >>> terms_of(2.0 * (Gaussian() + Linear()))
    (2.0 * Gaussian(), 2.0 * Linear())
    """
    if isinstance(kernel, Sum):
        return kernel.terms
    if isinstance(kernel, Scale) and len(inner := terms_of(kernel.kernel)) > 1:
        return tuple(kernel.factor * k for k in inner)
    return (kernel,)
