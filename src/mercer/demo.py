"""`./do demo`: a small true taste of what the package does."""
from __future__ import annotations

import numpy as np

from mercer import KernelRidge, RKHSFunction, check_psd
from mercer.kernels import Callable, Gaussian, Linear, Polynomial
from mercer.lifts import Identity, Parabolic, ball_to_halfspace
from mercer.methods import Fourier


def _title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def expression() -> None:
    _title("A kernel is an expression")
    k = 0.5 * Gaussian(bandwidth=1.0) + Linear() * Polynomial(degree=2)
    print("k =", k)
    print("\nits Gram matrix on four points of the plane:")
    print(np.round(k(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])), 3))
    print("\nwhy it is a kernel:")
    print(k.proof())


def counterexample() -> None:
    _title("What is not a kernel is found out")
    X = np.random.default_rng(0).normal(size=(50, 2))
    print("tanh(x'z):", check_psd(Callable(lambda X, Z: np.tanh(X @ Z.T)), X))
    print("Gaussian():", check_psd(Gaussian(), X) or "no counter-example (and there is a proof)")


def ball() -> None:
    """|x - c|^2 <= r^2 exactly where (2c, -1)'(x, |x|^2) >= |c|^2 - r^2."""
    _title("A ball becomes a halfspace")
    c, r = np.array([0.5, -0.3]), 0.8
    X = np.random.default_rng(0).uniform(-2, 2, size=(100_000, 2))
    inside = np.square(X - c).sum(1) <= r**2
    normal, offset = ball_to_halfspace(c, r)
    halfspace = Parabolic().fit_transform(X) @ normal >= offset
    print(f"lift x to (x, |x|^2): of {len(X):,} points {np.sum(inside):,} are in the ball,")
    print(f"and the one linear rule in the lifted space agrees on {np.mean(inside == halfspace):.2%} of all points.")


def features() -> None:
    _title("A kernel becomes features, with a certificate")
    X = np.random.default_rng(0).normal(size=(2000, 5))
    phi = (Gaussian(2.0) + 0.1 * Linear()).lift(1005, random_state=0).fit(X)
    print(f"{phi.kernel_!r} as {phi.n_features_out_:,} features:")
    print(phi.certify(X, random_state=0))


def learning() -> None:
    _title("A linear learner on those features, in one pass")
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(4000, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=4000)
    line = KernelRidge(lift=Identity()).fit(X[:3000], y[:3000])
    ours = KernelRidge(via=Fourier(400), cv=5, random_state=0).fit(X[:3000], y[:3000])
    low, high = ours.predict_interval(X[3000:], coverage=0.9)
    covered = np.mean((low <= y[3000:]) & (y[3000:] <= high))
    print(f"R^2 on 1,000 new rows: {line.score(X[3000:], y[3000:]):.3f} linear, {ours.score(X[3000:], y[3000:]):.3f} lifted")
    print(f"(alpha = {ours.alpha_:.2g} by 5 folds from the same pass; 90 % intervals cover {covered:.1%}).")
    print(ours.plan_)


def universal() -> None:
    _title("Sums of bumps come near any continuous function")
    X = np.linspace(0, 1, 400)[:, None]
    f = RKHSFunction.approximate(Gaussian(0.05), lambda X: np.abs(np.sin(7 * X[:, 0])), X, tol=0.05)
    print(f"|sin 7x| on [0, 1] to 0.05 by {len(f.weights)} Gaussians of bandwidth 0.05; its norm in their space is {f.norm():.3g}.")


def main() -> None:
    """Run every part."""
    for part in (expression, counterexample, ball, universal, features, learning):
        part()


if __name__ == "__main__":
    main()
