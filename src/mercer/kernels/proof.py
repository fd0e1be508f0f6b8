"""Why an expression is a kernel: a derivation by closure rules, printed as a small tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

from mercer.kernels import algebra, bags, dot, histograms, maps, stationary
from mercer.kernels.base import Kernel


@dataclass(frozen=True)
class Proof:
    """A statement, the rule it follows by, and the proofs of what the rule needs.

    `holds` is True (proved), False (known to be wrong), or None (not decided); `condition` is what
    is left to know.
    """

    statement: str
    rule: str
    holds: bool | None = True
    premises: tuple[Proof, ...] = ()
    condition: str | None = None

    def __bool__(self) -> bool:
        return self.holds is True

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self, lead: str = "") -> list[str]:
        mark = {True: "is a kernel", False: "is NOT a kernel", None: "is not decided"}[self.holds]
        condition = f" (if {self.condition})" if self.condition else ""
        out = [f"{lead}{self.statement} {mark}{condition}: {self.rule}"]
        return out + [line for p in self.premises for line in p._lines(lead + "  ")]


def prove(k: Kernel, d: int | None = None) -> Proof:
    """A derivation that k is positive semidefinite on rows of d numbers (any d, where None).

    >>> from mercer.kernels import Gaussian, Linear
    >>> print(prove(0.5 * Gaussian() + Linear()))
    0.5 * Gaussian() + Linear() is a kernel: a sum of kernels is a kernel
      0.5 * Gaussian() is a kernel: a kernel scaled by c >= 0 is a kernel
        Gaussian() is a kernel: Bochner: its spectral measure is a normal law
      Linear() is a kernel: x'z is the inner product of the features x
    """
    known = next(c for c in type(k).__mro__ if c in _rule.registry)
    same = (
        issubclass(known, Kernel) and known.on is type(k).on
    )  # a subclass with a formula of its own inherits no proof
    return _rule.registry[known if same else object](k, d)


Rule = Callable[[Kernel, int | None], Proof]


@singledispatch
def _rule(k: Kernel, d: int | None) -> Proof:
    return Proof(repr(k), f"no rule is known for {type(k).__name__}; try mercer.check_psd", None)


def register(kind: type[Kernel], rule: str | Rule) -> None:
    """Teach `prove` a kernel of your own: the sentence that proves it, or a function (kernel, d) ->
    Proof."""
    _rule.register(kind)(rule if callable(rule) else lambda k, d: Proof(repr(k), rule))


def _closed(rule: str) -> Rule:
    """A node that is a kernel whenever the kernels inside it are."""

    def on(k: Kernel, d: int | None) -> Proof:
        inner = getattr(k, "terms", None) or (k.kernel,)  # type: ignore[attr-defined]
        premises = tuple(prove(t, d) for t in inner)
        conditions = dict.fromkeys(p.condition for p in premises if p.condition)
        return Proof(
            repr(k),
            rule,
            True if all(premises) else None,
            premises,
            " and ".join(conditions) or None,
        )

    return on


def _scaled(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, algebra.Scale)
    inner = prove(k.kernel, d)
    holds = True if k.factor == 0 else inner.holds
    return Proof(repr(k), "a kernel scaled by c >= 0 is a kernel", holds, (inner,), inner.condition)


def _on_columns(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, algebra.OnColumns)
    inner = prove(k.kernel, len(k.columns))
    return Proof(
        repr(k),
        "a kernel of some of the columns is a kernel",
        inner.holds,
        (inner,),
        inner.condition,
    )


def _warped(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, algebra.Warped)
    inner = prove(k.kernel, None)  # f may change the number of columns
    return Proof(
        repr(k),
        "k(f(x), f(z)) has the features phi(f(x))",
        True if inner else None,
        (inner,),
        inner.condition,
    )


def _mapped(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, maps.Mapped)
    inner = prove(k.kernel, len(k.matrix))
    return Proof(
        repr(k), "k(Sx, Sz) has the features phi(Sx)", inner.holds, (inner,), inner.condition
    )


def _over_sets(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, bags.OverSets)
    inner = prove(k.kernel, None)  # of the members' columns
    rule = f"its features are the {k.how} over a bag of the features of its members"
    return Proof(repr(k), rule, inner.holds, (inner,), inner.condition)


def _sinc(k: Kernel, d: int | None) -> Proof:
    if d is None:
        rule = (
            "its spectral measure is uniform on a sphere of R^3 for d <= 3; for d > 3 there is none"
        )
        return Proof(repr(k), rule, None, (), "d <= 3")
    if d <= 3:
        return Proof(
            repr(k),
            f"Bochner: its spectral measure is uniform on a sphere of R^3, seen in d = {d} <= 3 coordinates",
        )
    return Proof(repr(k), f"for d = {d} > 3 its Fourier transform is not a positive measure", False)


_LEAVES: dict[type[Kernel], str] = {
    dot.Constant: "1 is the inner product of the feature 1",
    dot.Linear: "x'z is the inner product of the features x",
    dot.Cosine: "x'z / (|x| |z|) is the inner product of the features x / |x|, and of 0 where x = 0",
    dot.Polynomial: "a power of bias + x'z with bias >= 0: sums and products of kernels; its features are monomials",
    dot.AllSubsets: "its features are the products of all subsets of columns",
    dot.Anova: "its features are the products of `order` distinct columns",
    dot.ArcCosine: "an expectation over w ~ N(0, I) of products of units of w'x and w'z",
    histograms.AdditiveChi2: "on rows >= 0 each column is sqrt(xz) / cosh(log(x/z) / 2), whose spectral measure is 1 / cosh(pi w)",
    histograms.Chi2: "Schoenberg: on rows >= 0 the sum is |phi(x) - phi(z)|^2 of the features phi of AdditiveChi2",
    stationary.Gaussian: "Bochner: its spectral measure is a normal law",
    stationary.Matern: "Bochner: its spectral measure is a multivariate t law",
    stationary.Cauchy: "a mixture of Gaussians of exponentially distributed precision",
    stationary.RationalQuadratic: "a mixture of Gaussians of Gamma-distributed precision",
    stationary.Periodic: "Bochner: a product over columns of cosine series with coefficients I_j(1/b^2) >= 0",
}
for _kind, _sentence in _LEAVES.items():
    register(_kind, _sentence)


def _linear(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, dot.Linear)
    return Proof(
        repr(k),
        _LEAVES[dot.Linear]
        if k.metric is None
        else "A is positive semidefinite: the features are A^(1/2) x",
    )


def _laplace(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, stationary.Laplace)
    p, q = k.norm, k.exponent
    if q == 1:
        law = "independent Cauchy laws" if p == 1 else "a multivariate Cauchy law"
        return Proof(repr(k), f"Bochner: its spectral measure is {law}")
    if q == 2:
        return Proof(repr(k), "Bochner: its spectral measure is a normal law")
    base = "|x - z|_1" if p == 1 else "|x - z|_2^2"
    return Proof(
        repr(k),
        f"Schoenberg: exp(-t) is a kernel where t is conditionally negative definite; {base} is, and so is its "
        f"power |x - z|_{p}^{q:g} for 0 < {q:g} <= {p}",
    )


register(dot.Linear, _linear)
register(stationary.Laplace, _laplace)
register(stationary.Sinc, _sinc)
register(
    dot.Callable,
    lambda k, d: Proof(
        repr(k), "a Python function tells nothing of itself; try mercer.check_psd", None
    ),
)
register(algebra.Sum, _closed("a sum of kernels is a kernel"))
register(algebra.Product, _closed("a product of kernels is a kernel (Schur)"))
register(algebra.Power, _closed("an integer power of a kernel is a product of kernels"))
register(algebra.Exp, _closed("exp is a power series with coefficients 1/n! >= 0"))
register(algebra.Series, _closed("a polynomial with coefficients >= 0 of a kernel is a kernel"))
register(algebra.Weighted, _closed("f(x) k(x, z) f(z) has the features f(x) phi(x)"))
register(algebra.Normalized, _closed("a kernel weighted by f(x) = 1 / sqrt(k(x, x)) is a kernel"))
register(algebra.Scale, _scaled)
register(algebra.OnColumns, _on_columns)
register(algebra.Warped, _warped)
register(maps.Mapped, _mapped)
register(bags.OverSets, _over_sets)
