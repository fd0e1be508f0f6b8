"""KernelLogistic over features, and what classifiers over features share: rows by batch, and rounds that minimise a smooth loss."""
from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.base import OverFeatures, bytes_of
from mercer.inputs import Array, Matrix
from mercer.learners.ridge import penalised
from mercer.ops.threads import single_blas
from mercer.ops.tiles import cuts
from mercer.plan import Plan
from mercer.stats import Newton
from mercer.stats.fold import fold, threads
from mercer.stats.sample import mix

TILE_BYTES = 1 << 20  # of features: both products of a pass then read them from cache
SHORT, MANY, FEW = 512, 8192, 512  # up to so many features, MANY rows tell their curvature, else FEW do
REFRESH = {1, 4, 9, 20, 40, 80}  # the rounds at which the curvature of the sampled rows is taken again
MEMORY = 20  # rounds that a quasi-Newton step remembers
FAR = 8.0  # deviations of a column's mean from zero beyond which the column is shifted


class FeaturesClassifier(ClassifierMixin, OverFeatures):
    """A classifier by scores that are linear in features: f(x) = phi(x)'coef + intercept, one score a class, or one for two."""

    fit_intercept: bool
    class_weight: Any
    max_iter: int
    n_iter_: int
    coef_: Array
    intercept_: Array

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Array, Array]:
        """Rows, the number of each row's class and its weight; a row of weight 0 is as absent."""
        sparse = "csr" if self._takes_sparse() else False
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], accept_sparse=sparse, order="C")
        check_classification_targets(y)
        w = self._weights(sample_weight, X)
        if w is not None:
            X, y, w = X[w > 0], y[w > 0], w[w > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class among rows of positive weight; give rows of at least two classes.")
        self._fit_lift(X, w)
        w = np.ones(len(codes)) if w is None else w
        return X, codes, w * class_weights(self.class_weight, self.classes_, codes, w)[codes]

    def _rows(self, X: Matrix) -> Rows:
        """The features of X: kept as one array where they fit `memory_limit`, else computed again at every pass."""
        head = self._dense(self.lift_.transform(X[:1024]))
        shift = offset(head) if self.fit_intercept else None
        n, D, limit = X.shape[0], self.n_features_lifted_, bytes_of(self.memory_limit)
        if float(n) * D * head.dtype.itemsize <= limit:
            kept = moved(self._dense(self.lift_.transform(X)), shift)
            return Rows(n, D, kept.dtype, shift, True, lambda: [(slice(0, n), kept)], lambda i: kept[i], limit)

        def pick(i: Array) -> Array:
            return moved(self._dense(self.lift_.transform(X[i])), shift)

        return Rows(n, D, head.dtype, shift, False, lambda: ((rows, moved(F, shift)) for rows, F in self._lifted(X)), pick, limit)

    def _keep(self, rows: Rows, theta: Array) -> None:
        """coef_ (K, D) and intercept_ (K,) of features that are not shifted."""
        coef = theta[: rows.D]
        b = theta[rows.D] if self.fit_intercept else np.zeros(theta.shape[1])
        self.coef_, self.intercept_ = coef.T.copy(), b if rows.shift is None else b - rows.shift @ coef

    def decision_function(self, X: Any) -> Array:
        """phi(x)'coef + intercept: (n,) for two classes, the second where positive, else (n, K)."""
        check_is_fitted(self, "coef_")
        f = self._linear(self._check_X(X, reset=False), self.coef_.T, self.intercept_)
        return f[:, 0] if len(self.classes_) == 2 else f

    def predict(self, X: Any) -> Array:
        """The class of the largest score."""
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else f.argmax(1)]

    def _warn(self, converged: bool, remedy: str) -> None:
        if not converged:
            text = f"stopped after {self.n_iter_} rounds (max_iter={self.max_iter}) before tol was reached"
            warnings.warn(f"{type(self).__name__} {text}; {remedy}.", ConvergenceWarning, stacklevel=3)

    def _rounds_plan(self, rows: Rows, found: list[Minimum]) -> Plan:
        """How the rounds of `minimise` went."""
        passes, r = sum(m.passes for m in found), found[0].rows
        way = "newton" if found[0].exact else "preconditioned quasi-newton"
        curvature = "all rows at every round" if found[0].exact else f"{r:,} sampled rows, preconditioning L-BFGS; no D x D array"
        where = "kept in memory" if rows.kept else "computed again at every pass, as they exceed memory_limit"
        settings = {"lift": type(self.lift_).__name__, "n_features": rows.D, "rows": rows.n, "rounds": sum(m.rounds for m in found)}
        held = float(rows.dtype.itemsize) * rows.D * (r + (rows.n if rows.kept else 0))
        work = 4.0 * rows.n * rows.D * found[0].theta.shape[1] * passes
        return Plan(way, f"{rows.D:,} features, {where}; curvature of {curvature}", settings, bytes=held, flops=work, passes=passes)


class KernelLogistic(FeaturesClassifier):
    """argmin sum_i w_i loss_i + alpha/2 |coef|^2 over the features of a kernel; scikit-learn's C is 1/alpha.

    loss = log(1 + exp(-y f)) for two classes, -log softmax(f)_y for more; f = phi(x)'coef + intercept, the intercept free.
    Few rows (8,192, or 512 of more than 512 features) and two classes: Newton's rounds; else L-BFGS, preconditioned by the
    curvature of a fixed sample of rows. A round is one pass, a fold of values and gradients; D x D arrays are never
    needed beyond D = 512. Models of losses that are not quadratic do not add, so there is no partial_fit, merge or forget.

    Parameters
    ----------
    kernel : a kernel, a name as in scikit-learn ("rbf", "linear", "poly", "laplacian"), or None: a Gaussian scaled to the data.
    alpha : the penalty, > 0.
    via : "auto" or "features", "landmarks", or a value of `mercer.methods` (`Fourier(1000)`, `Landmarks(500)`, `Exact()`).
    lift : a feature map, instead of a kernel.
    class_weight : None, "balanced", or a dict of weights by class, which multiply those of the rows.
    tol : the last step is the one that promises to lower the objective by less than tol^2 of it (float32: 1e-7 of it).
    memory_limit : of the features kept in memory, as bytes or "4GB"; beyond it they are computed again at every pass.

    Attributes: `classes_`, `coef_` (1 or K, D), `intercept_`, `n_iter_`, `objective_`, `lift_`, `kernel_`, `plan_`.

    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> m = KernelLogistic(alpha=1e-2, random_state=0).fit(X, np.abs(X[:, 0]) < 1)
    >>> m.predict([[0.0], [2.0]]), bool(m.predict_proba([[0.0]])[0, 1] > 0.95)
    (array([ True, False]), True)
    """

    def __init__(
        self, kernel: Any = None, alpha: float = 1.0, via: Any = "auto", *, lift: Any = None, fit_intercept: bool = True,
        class_weight: Any = None, tol: float = 1e-6, max_iter: int = 100, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map, then rounds of passes over its features."""
        alpha = positive(self.alpha, "alpha")
        X, codes, w = self._checked(X, y, sample_weight)
        two, rows = len(self.classes_) == 2, self._rows(X)
        Y = 2.0 * codes[:, None] - 1 if two else np.eye(len(self.classes_))[codes]
        p = Problem(rows, Logistic() if two else Softmax(), Y, w, alpha, self.fit_intercept)
        m = minimise(p, positive(self.tol, "tol"), whole(self.max_iter, "max_iter"))
        self._keep(rows, m.theta)
        self.n_iter_, self.objective_, self.plan_ = m.rounds, m.value, self._rounds_plan(rows, [m])
        self._warn(m.converged, "raise max_iter or alpha")
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class, (n, K)."""
        f = self.decision_function(X)
        return np.stack([expit(-f), expit(f)], axis=1) if f.ndim == 1 else softmax(f, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Its logarithm, without underflow."""
        f = self.decision_function(X)
        return np.stack([log_expit(-f), log_expit(f)], axis=1) if f.ndim == 1 else log_softmax(f, axis=1)


# losses of scores f (n, K): the sum of the rows' values, its slope (n, K), and the mean curvature of each row (n,)
class Loss(Protocol):
    def value(self, f: Array, Y: Array, w: Array) -> float: ...
    def slope(self, f: Array, Y: Array, w: Array) -> Array: ...
    def curvature(self, f: Array, Y: Array, w: Array) -> Array: ...


class Logistic:
    """w log(1 + exp(-y f)), y in {-1, 1}."""

    def value(self, f: Array, Y: Array, w: Array) -> float: return float(w @ np.logaddexp(0, -Y * f)[:, 0])
    def slope(self, f: Array, Y: Array, w: Array) -> Array: return -w[:, None] * Y * expit(-Y * f)
    def curvature(self, f: Array, Y: Array, w: Array) -> Array: return w * (expit(f) * expit(-f))[:, 0]


class Softmax:
    """-w log softmax(f)_y, Y one row of the identity a row."""

    def value(self, f: Array, Y: Array, w: Array) -> float: return -float(w @ np.sum(Y * log_softmax(f, axis=1), axis=1))
    def slope(self, f: Array, Y: Array, w: Array) -> Array: return w[:, None] * (softmax(f, axis=1) - Y)

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        """The mean of diag(p) - p p' over scores that sum to zero."""
        return w * (1 - np.square(softmax(f, axis=1)).sum(1)) / (f.shape[1] - 1)


@dataclass(frozen=True, eq=False)
class Rows:
    """The features (n, D) of rows, less a fixed shift: batches of them, and any rows picked."""

    n: int
    D: int
    dtype: Any
    shift: Array | None
    kept: bool
    batches: Callable[[], Iterable[tuple[slice, Array]]]
    pick: Callable[[Array], Array]
    limit: float

    def tiles(self) -> Iterator[tuple[Array, int, list[slice]]]:
        step = max(16, TILE_BYTES // (self.D * self.dtype.itemsize))
        return ((F, rows.start, cuts(len(F), step)) for rows, F in self.batches())

    def fold(self, of: Callable[[slice, Array], Any], total: Any) -> Any:
        """total + of(rows, F) + ... over tiles that stay in cache, in a fixed order whatever the number of threads."""
        for F, start, tiles in self.tiles():
            total = fold(((F[t], slice(start + t.start, start + t.stop)) for t in tiles), lambda v: of(v[1], v[0]), total, threads)
        return total

    def sample(self) -> Array:
        """The rows that tell the curvature: all of few, else those whose numbers have the least hashes."""
        most = MANY if self.D <= SHORT else int(min(FEW, max(16, self.limit // (4 * self.D * self.dtype.itemsize))))
        if self.n <= most:
            return np.arange(self.n)
        return np.sort(np.argsort(mix(np.arange(self.n, dtype=np.uint64)))[:most])


@dataclass(frozen=True, eq=False)
class Point:
    """A model theta (D [+ 1], K), its scores (n, K) and the objective there."""

    theta: Array
    f: Array
    value: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """loss(F coef + intercept) + alpha/2 |coef|^2, the intercept being the last row of theta."""

    rows: Rows
    loss: Loss
    Y: Array
    w: Array
    alpha: float
    intercept: bool

    @property
    def zero(self) -> Array:
        return np.zeros((self.rows.D + self.intercept, self.Y.shape[1]))

    def at(self, theta: Array) -> Point:
        """One pass: scores, value and gradient."""
        D, f = self.rows.D, np.empty(self.Y.shape)
        coef, b = theta[:D].astype(self.rows.dtype), theta[D:].sum(0)

        def of(t: slice, F: Array) -> Newton:
            f[t] = F @ coef
            f[t] += b
            r = self.loss.slope(f[t], self.Y[t], self.w[t])
            return Newton(self.loss.value(f[t], self.Y[t], self.w[t]), self._back(F, r), np.zeros(()))

        s = self.rows.fold(of, Newton(0.0, self.zero, np.zeros(())))
        return Point(theta, f, s.value + self._penalty(theta), s.gradient + self._pull(theta))

    def _back(self, F: Array, r: Array) -> Array:
        """[F, 1]' r, in F's precision and then in float64."""
        g = (r.T.astype(F.dtype) @ F).T.astype(np.float64)
        return np.concatenate([g, r.sum(0)[None]]) if self.intercept else g

    def _penalty(self, theta: Array) -> float:
        return self.alpha / 2 * float(np.square(theta[: self.rows.D]).sum())

    def _pull(self, theta: Array) -> Array:
        pull = self.alpha * theta
        pull[self.rows.D :] = 0
        return pull

    def step(self, x: Point, d: Array, slope: float) -> Point:
        """x + t d with t = 1, or halved until the objective falls enough; scores are linear in t, so halving needs no pass."""
        rounding = float(np.finfo(self.rows.dtype).eps) * abs(x.value)
        new, t = self.at(x.theta + d), 1.0
        value, df = new.value, new.f - x.f
        while value > x.value + 1e-4 * t * slope + rounding:
            t /= 2
            if t < 1e-12:
                return x
            value = self.loss.value(x.f + t * df, self.Y, self.w) + self._penalty(x.theta + t * d)
        return new if t == 1 else self.at(x.theta + t * d)


class Curvature:
    """The inverse of F'diag(q)F + alpha I, bordered by the intercept, of all rows or of a sample of them.

    With fewer rows than features it is (I - A'(A A' + mu I)^-1 A)/mu, A = sqrt(q) F. Directions that a sample misses get
    mu, the harmonic mean of the eigenvalues that it has, instead of alpha. Of Frangella, Tropp and Udell, Randomized
    Nystrom preconditioning (2023), with rows for the sketch.
    """

    def __init__(self, F: Array, q: Array, alpha: float, *, every: bool, intercept: bool) -> None:
        root = np.sqrt(q)
        self.A = F.astype(np.float64 if every else F.dtype) * root.astype(F.dtype)[:, None]
        self.tall = F.shape[1] <= F.shape[0]
        G = (self.A.T @ self.A if self.tall else self.A @ self.A.T).astype(np.float64)
        self.mu = alpha if every or self.tall else harmonic(G, alpha)
        self.solve, self.border = penalised(G, self.mu), None
        if intercept:
            h = (root.astype(self.A.dtype) @ self.A).astype(np.float64)[:, None]
            u = self._inner(h)
            self.border = (u, max(q.sum() - float(np.vdot(h, u)), 1e-12 * q.sum()) or 1.0)

    def _inner(self, r: Array) -> Array:
        if self.tall:
            return self.solve(r)
        back = self.solve((self.A @ r.astype(self.A.dtype)).astype(np.float64))
        return (r - (back.T.astype(self.A.dtype) @ self.A).T) / self.mu

    def __call__(self, r: Array) -> Array:
        if self.border is None:
            return self._inner(r)
        u, schur = self.border
        b = (r[-1:] - u.T @ r[:-1]) / schur
        return np.concatenate([self._inner(r[:-1]) - u * b, b])


def harmonic(G: Array, alpha: float) -> float:
    """About m / trace (G + alpha I)^-1, by eight vectors of signs."""
    m = len(G)
    signs = np.where(mix(np.arange(8 * m, dtype=np.uint64)) & np.uint64(1), 1.0, -1.0).reshape(m, 8)
    return max(alpha, 8 * m / float(np.vdot(signs, penalised(G, alpha)(signs))), 1e-6 * float(np.diag(G).max()))


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where `minimise` arrived, and how."""

    theta: Array
    f: Array
    value: float
    rounds: int
    passes: int
    rows: int
    exact: bool
    converged: bool


@single_blas()  # the tiles keep all cores busy; threads of BLAS for the small solves between them would only wait for each other
def minimise(p: Problem, tol: float, max_iter: int, start: Array | None = None) -> Minimum:
    """Newton's rounds where the curvature is that of all rows and of one score, else L-BFGS that begins from a sample's."""
    picked, passes = p.rows.sample(), 1
    F, Y, w = p.rows.pick(picked), p.Y[picked], p.w[picked]
    every = len(picked) == p.rows.n
    exact, scale = every and p.Y.shape[1] == 1, p.rows.n / len(picked)
    x, pairs, done, k = p.at(p.zero if start is None else start), deque[tuple[Array, Array]](maxlen=MEMORY), False, 0
    least = max(tol**2, float(np.finfo(p.rows.dtype).eps))
    while not done and k < max_iter:
        k += 1
        if exact or k in REFRESH:
            H = Curvature(F, scale * p.loss.curvature(x.f[picked], Y, w), p.alpha, every=every, intercept=p.intercept)
        d = -two_loops(x.gradient, pairs, H)
        slope = float(np.vdot(x.gradient, d))
        done = -slope / 2 <= least * abs(x.value)
        new = p.step(x, d, slope) if slope < 0 else x
        if not exact and new is not x:
            pairs.append((new.theta - x.theta, new.gradient - x.gradient))
        stuck = new is x
        passes, x = passes + 1, new
        if stuck:
            break
    return Minimum(x.theta, x.f, x.value, k, passes, len(picked), exact, done)


def two_loops(g: Array, pairs: Iterable[tuple[Array, Array]], H: Callable[[Array], Array]) -> Array:
    """The inverse Hessian that starts from H and has seen these steps and changes of gradient, times g (Nocedal 1980)."""
    r, seen = g.copy(), [(s, y, float(np.vdot(s, y))) for s, y in pairs]
    seen, took = [v for v in seen if v[2] > 0], []
    for s, y, sy in reversed(seen):
        took.append(float(np.vdot(s, r)) / sy)
        r -= took[-1] * y
    z = H(r)
    for (s, y, sy), a in zip(seen, reversed(took), strict=True):
        z += (a - float(np.vdot(y, z)) / sy) * s
    return z


def offset(head: Array) -> Array | None:
    """The means of the columns that are far from zero, in their own deviations: sums about zero would lose their digits."""
    mean, deviation = head.mean(0, dtype=np.float64), head.std(0, dtype=np.float64)
    far = np.abs(mean) > FAR * deviation
    return np.where(far, mean, 0).astype(head.dtype) if far.any() else None


def moved(F: Array, shift: Array | None) -> Array:
    return F if shift is None else F - shift


def class_weights(given: Any, classes: Array, codes: Array, w: Array) -> Array:
    """The factor of every class: 1, those of a dict, or for "balanced" such that all classes weigh the same."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return w.sum() / (len(classes) * np.bincount(codes, w))
    if isinstance(given, dict) and all(v > 0 for v in given.values()):
        return np.array([float(given.get(c, 1.0)) for c in classes.tolist()])
    raise ValueError(f"class_weight must be None, 'balanced' or a dict of weights > 0 by class, got {given!r}.")


def positive(value: Any, name: str) -> float:
    if isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0:
        return float(value)
    raise ValueError(f"{name} must be a number > 0, got {value!r}.")


def whole(value: Any, name: str) -> int:
    if isinstance(value, int | np.integer) and value >= 1:
        return int(value)
    raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")
