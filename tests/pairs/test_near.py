"""Distances in a kernel's space keep their relative accuracy however near the points are: against
80 digits of the same formula."""

from decimal import Decimal, getcontext
from functools import reduce
from itertools import combinations
from operator import mul

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from mercer.kernels import Callable, Gaussian, Kernel, Linear, Matern, RationalQuadratic
from mercer.ops.special import half_integer_coefficients, matern_deficit
from tests.market import KERNELS, LEAVES, TREES, dots, rows, trees

getcontext().prec = 80
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863"
)


def series(x, term, start):
    """Sum of terms until they are nothing."""
    total, n = Decimal(0), start
    while abs(term) > Decimal(10) ** -79:
        total, term, n = total + term, -term * x * x / ((n + 1) * (n + 2)), n + 2
    return total


def sin(x):
    x = x - 2 * PI * (x / (2 * PI)).to_integral_value()
    return series(x, x, 1)


def atan(x):
    if abs(x) > Decimal("0.3"):
        return 2 * atan(x / (1 + (1 + x * x).sqrt()))
    return sum((-1) ** k * x ** (2 * k + 1) / (2 * k + 1) for k in range(90))


class Digits:
    """The functions of formulas, to 80 digits."""

    exp, log1p, sqrt = (
        Decimal.exp,
        staticmethod(lambda a: (1 + a).ln()),
        staticmethod(lambda a: Decimal(a).sqrt()),
    )
    sin, cos = staticmethod(sin), staticmethod(lambda a: series(a, Decimal(1), 0))
    sinc = staticmethod(lambda a: sin(a) / a if a else Decimal(1))
    ratio = staticmethod(lambda a, b: a / b if b else Decimal(0))
    power = staticmethod(lambda a, q: (q * a.ln()).exp() if a else Decimal(0))


class Number(Decimal):
    """A Decimal that meets floats as they are."""

    def _of(name):
        op = getattr(Decimal, name)
        return lambda self, other: Number(op(self, Decimal(other)))

    for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
        locals()[f"__{_name}__"] = _of(f"__{_name}__")

    def __pow__(self, n):
        return Number(Decimal.__pow__(self, int(n)) if n else 1)

    def __neg__(self):
        return Number(Decimal.__neg__(self))


def numbered(f):
    return staticmethod(lambda *a: Number(f(*map(Decimal, a))))


for _name in ("exp", "log1p", "sqrt", "sin", "cos", "sinc", "ratio", "power"):
    setattr(Digits, _name, numbered(getattr(Digits, _name)))


class One:
    """One pair of rows, to 80 digits."""

    xp, one = Digits, Number(1)

    def __init__(self, x, z):
        self.x, self.z = [Number(v) for v in x], [Number(v) for v in z]

    width = property(lambda self: len(self.x))
    rows = property(lambda self: One(self.x, self.x))
    cols = property(lambda self: One(self.z, self.z))
    dot = property(lambda self: Number(sum(a * b for a, b in zip(self.x, self.z, strict=True))))
    prod1p = property(
        lambda self: reduce(
            mul, [a * b + 1 for a, b in zip(self.x, self.z, strict=True)], Number(1)
        )
    )

    def bilinear(self, A):
        return Number(
            sum(a * b * float(A[i, j]) for i, a in enumerate(self.x) for j, b in enumerate(self.z))
        )

    def _scaled(self, b):
        return [
            (u - v) / w
            for u, v, w in zip(
                self.x, self.z, np.broadcast_to(b, len(self.x)).tolist(), strict=True
            )
        ]

    def sqdist(self, b=1.0):
        return Number(sum(t * t for t in self._scaled(b)))

    def dist(self, b=1.0):
        return Number(self.sqdist(b).sqrt())

    def absdist(self, b=1.0):
        return Number(sum(abs(t) for t in self._scaled(b)))

    def sinsq(self, period, b):
        waves = [Digits.sin(PI * t) for t in self._scaled(period)]
        return Number(
            sum(
                (s / w) ** 2
                for s, w in zip(waves, np.broadcast_to(b, len(waves)).tolist(), strict=True)
            )
        )

    def elementary(self, order):
        return Number(
            sum(
                (
                    reduce(mul, c)
                    for c in combinations(
                        [a * b for a, b in zip(self.x, self.z, strict=True)], order
                    )
                ),
                Number(0),
            )
        )

    @property
    def angle(self):
        x, z = ([v / Digits.sqrt(One(u, u).dot) for v in u] for u in (self.x, self.z))
        gap, both = (
            Digits.sqrt(sum((u + s * v) ** 2 for u, v in zip(x, z, strict=True))) for s in (-1, 1)
        )
        return Number(2 * atan(Decimal(gap) / Decimal(both)))

    def map(self, matrix):
        S = matrix.values if matrix.values.ndim == 2 else np.diag(matrix.values)
        return One(
            *(
                [Number(sum(float(s) * v for s, v in zip(row, u, strict=True))) for row in S]
                for u in (self.x, self.z)
            )
        )

    def pick(self, columns):
        return One([self.x[c] for c in columns], [self.z[c] for c in columns])


def exactly(k, x, z):
    square = k.on(One(x, x)) + k.on(One(z, z)) - 2 * k.on(One(x, z))
    return float(Digits.sqrt(max(square, Number(0))))


READ = {
    name: k
    for name, k in (LEAVES | TREES).items()
    if "bessel" not in name and name not in ("matern high", "exponential")
}


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("name", READ)
def test_distances_to_80_digits(name, offset):
    k, rng = READ[name], np.random.default_rng(0)
    X = rng.uniform(0.2, 1, size=(3, 3)) + offset
    for size in (1e-9, 1e-7, 1e-4, 1e-2, 1.0):
        Z = X + size * rng.normal(size=X.shape)  # as it was rounded
        found = k.distance(X, Z)
        want = np.array([[exactly(k, x.tolist(), z.tolist()) for z in Z] for x in X])
        np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-300, err_msg=f"{size}")


UNITS = {
    "cosine": 1e-15,
    "normalized linear": 1e-15,
    "mapped angles": 1e-15,
    "step": 2e-8,
    "normalized": 1e-9,
}  # rounding of unit vectors, of angles (as a root), of cosines
TURNS = {
    "periodic",
    "periodic ard",
    "columns",
    "mapped circles",
}  # a period forgets what is far: x itself has no digits left there


@pytest.mark.parametrize("name", READ)
def test_far_points_and_unlike_norms_to_80_digits(name):
    """Rows of norms 1e-3 to 1e8, in unlike, near, equal and opposite directions."""
    k, rng = READ[name], np.random.default_rng(1)
    u = np.array([0.6, 0.64, 0.48])
    ways = [
        u,
        u + 1e-7 * rng.normal(size=3),
        u + 1e-2 * rng.normal(size=3),
        rng.normal(size=3),
        -u + 1e-3 * rng.normal(size=3),
    ]
    X = np.array([s * w for s, w in zip((1e-3, 1.0, 1e3, 1e5, 1e8), ways, strict=True)])
    Z = np.array(
        [
            s * w
            for s in ((1.0, 1e3) if name in TURNS else (1e-3, 1.0, 1e3, 1e4, 1e6, 1e8))
            for w in ways[::2]
        ]
    )
    X = X[:3] if name in TURNS else X
    want = np.array([[exactly(k, x.tolist(), z.tolist()) for z in Z] for x in X])
    np.testing.assert_allclose(k.distance(X, Z), want, rtol=1e-8, atol=UNITS.get(name, 1e-300))


@pytest.mark.parametrize("mixture", [0.1, 0.6, 3.0])
@pytest.mark.parametrize("far", [1e3, 1e4, 1e5, 1e7, 1e8, 1e12])
def test_rational_quadratics_of_far_points(mixture, far):
    k = RationalQuadratic(1.0, mixture)
    np.testing.assert_allclose(
        k.distance([[0.0]], [[far]]), [[exactly(k, [0.0], [far])]], rtol=1e-12
    )


def test_directions_do_not_hang_on_norms():
    k = Linear().normalized()
    root = 0.7653668647301796
    for x, z, want in (
        ([1e-3, 0], [1e6, 0], 0.0),
        ([1, 1.0000001], [1e8, 1e8], 4.99999975e-8),
        ([1e-3, 0], [1e4, 1e4], root),
    ):
        np.testing.assert_allclose(k.distance([x], [z]), [[want]], rtol=1e-8)
        np.testing.assert_allclose(
            (k**2).distance([x], [z]) ** 2, [[2 * want**2 - want**4 / 2]], rtol=1e-7
        )


def test_exponentials_and_high_orders():
    k, X = KERNELS["exponential"], rows(3)
    Z = X + 1e-9 * np.random.default_rng(0).normal(size=X.shape)
    np.testing.assert_allclose(
        k.distance(X, Z), [[exactly(k, x.tolist(), z.tolist()) for z in Z] for x in X], rtol=1e-8
    )


@pytest.mark.parametrize(
    "nu", [0.5, 1.5, 2.5]
)  # whose coefficients are right to the last digit that counts
def test_what_matern_profiles_lose(nu):
    """The integral of the slope is the series of half-integer orders."""
    for r in (1e-12, 1e-6, 1e-3, 0.1, 0.19, 0.5):
        t = Number(r)
        want = 1 - sum(
            t**j * c for j, c in enumerate(half_integer_coefficients(int(nu)))
        ) * Digits.exp(-t)
        np.testing.assert_allclose(matern_deficit(nu, np.array([r])), float(want), rtol=1e-9)


@pytest.mark.parametrize(
    "nu", [0.1, 0.3, 0.8, 0.999, 1.0, 1.001, 1.2, 1.9, 2.0, 3.3, 7.1, 39.0, 55.0]
)
def test_other_orders_are_smooth_across_the_join(nu):
    """Near zero 1 - k is c r^(2 min(nu, 1)), and both formulas meet where they are joined."""
    edge = np.sqrt(max(0.04, 0.2 * (nu - 1)))
    both = matern_deficit(nu, edge * np.array([1 - 1e-9, 1 + 1e-9]))
    np.testing.assert_allclose(both[0], both[1], rtol=2e-7)
    small = matern_deficit(nu, np.array([1e-8, 1e-9]))
    if abs(nu - 1) > 0.01:
        np.testing.assert_allclose(
            small[0] / small[1], 100 ** min(nu, 1), rtol=1e-2 if abs(nu - 1) < 0.3 else 1e-6
        )
    assert (np.diff(matern_deficit(nu, np.linspace(0, 3, 200))) > 0).all()


@settings(max_examples=25)
@given(trees)
def test_distances_of_random_trees(k):
    """Far points: the plain formula. Near ones: as far as they are moved, to second order."""
    X = rows(8)
    plain = np.sqrt(np.maximum(k.diag(X)[:, None] + k.diag(X) - 2 * k(X), 0))
    np.testing.assert_allclose(k.distance(X), plain, atol=2e-6 * np.sqrt(k.diag(X).max() + 1))
    assert (np.diag(k.distance(X)) == 0).all()
    near, nearer = (np.diag(k.distance(X[:5], X[:5] + h)) for h in (2.0**-26, 2.0**-28))
    assert ((near >= nearer) & (near <= 4.2 * nearer + 1e-300)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_precision(dtype):
    X = rows(9).astype(dtype)
    for name, k in (LEAVES | TREES).items():
        D = k.distance(X)
        assert D.dtype == dtype
        tol = dict(rtol=1e-4, atol=1e-6) if dtype == np.float32 else dict(rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(k.distance(sp.csr_array(X)), D, err_msg=name, **tol)


def test_formulas_that_cannot_be_read_so_fall_back():
    class Bent(Kernel):
        def on(self, p):
            return np.tanh(p.dot) ** 2 + 1 if isinstance(p.dot, np.ndarray) else np.tanh(p.dot)

    X = rows(5)
    for k in (Bent(), Callable(dots) + Gaussian(), Linear().warped(np.tanh) * Matern()):
        plain = np.sqrt(np.maximum(k.diag(X)[:, None] + k.diag(X) - 2 * k(X), 0))
        np.testing.assert_allclose(k.distance(X), plain, atol=1e-7)
    words = Callable(lambda A, B: np.array([[float(a == b) for b in B] for a in A]))
    np.testing.assert_allclose(
        words.distance(["a", "b"], ["a", "c"]), [[0, np.sqrt(2)], [np.sqrt(2), np.sqrt(2)]]
    )
