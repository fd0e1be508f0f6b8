"""`./do demo`: a small true taste of what the package does."""
from __future__ import annotations

import numpy as np

from mercer import RKHSFunction, check_psd
from mercer.kernels import Callable, Gaussian, Linear, Polynomial


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
    lifted = np.column_stack([X, np.square(X).sum(1)])
    halfspace = lifted @ np.append(2 * c, -1.0) >= c @ c - r**2
    print(f"lift x to (x, |x|^2): of {len(X):,} points {np.sum(inside):,} are in the ball,")
    print(f"and the one linear rule in the lifted space agrees on {np.mean(inside == halfspace):.2%} of all points.")


def universal() -> None:
    _title("Sums of bumps come near any continuous function")
    X = np.linspace(0, 1, 400)[:, None]
    f = RKHSFunction.approximate(Gaussian(0.05), lambda X: np.abs(np.sin(7 * X[:, 0])), X, tol=0.05)
    print(f"|sin 7x| on [0, 1] to 0.05 by {len(f.weights)} Gaussians of bandwidth 0.05; its norm in their space is {f.norm():.3g}.")


def main() -> None:
    """Run every part."""
    for part in (expression, counterexample, ball, universal):
        part()


if __name__ == "__main__":
    main()
