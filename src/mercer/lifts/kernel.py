"""k.lift(...): a kernel expression as a transformer, by the duality table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mercer import bounds, methods
from mercer.inputs import Matrix, Table
from mercer.invariants import Is
from mercer.kernels import Kernel, Sum, positioned
from mercer.kernels.defaults import kernel_of, resolve
from mercer.kernels.named import Gamma
from mercer.lifts.algebra import Concatenate
from mercer.lifts.base import Lift, Seed, seed_of
from mercer.lifts.certificate import SAMPLED_PAIRS, Certificate, certify, draw_pairs, errors, order
from mercer.lifts.duality import EXACT_LIMIT, Budget, build, has_few, probe
from mercer.lifts.fourier import MAX_PROMISED_FEATURES
from mercer.lifts.spectral import spectrum
from mercer.lifts.widths import default_features, width
from mercer.listed import listed
from mercer.plans import Plan
from mercer.store import register

FIRST_PROBE, LAST_PROBE = 64, 1 << 17  # features that a probe begins and ends with


@register("lifts.KernelLift")
class KernelLift(Lift):
    """A map of any kernel expression: exact where its features are few, else random.

    Which map it is follows from the structure of the kernel.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        The kernel; None is a Gaussian scaled to the data.
    n_features : int, or list of int, default=None
        How many features at most; for a sum also a list, one number a term. None: all there
        are, up to 10,000; of kernels with more, four times the rows of `fit`, from 256 to
        2,048.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    eps : float, default=None
        Instead of n_features: so many that with probability 1 - delta no pair of the rows of
        `fit` is off by more than eps (stationary kernels: iid frequencies, Hoeffding's bound;
        small exact maps are never off). Where there is no bound, or it asks for more than
        20,000 features, as many as a probe shows to be enough for 99.5 % of the pairs,
        certified on other pairs.
    delta : float, default=0.01
        See `eps`.
    method : str or a value of `mercer.methods`, default="auto"
        "auto", "exact", "fourier", "landmarks", "sketch", or a value.
    random_state : int, RandomState, Generator or None, default=None
        The seed of a random map.

    Attributes
    ----------
    map_ : Lift
        The map that was made.
    plan_ : Plan or None
        Which promise `eps` got: "exact", "bound" or "probe".
    certificate_ : Certificate or None
        That of a probe.

    Examples
    --------
    >>> from mercer.kernels import AllSubsets, Linear
    >>> phi = (Linear() * AllSubsets()).lift().fit([[1.0, 2.0]])
    >>> phi.n_features_out_, phi.map_
    (8, Tensor(lifts=[Identity(), Subsets()]))
    """

    sparse: ClassVar[bool] = True
    gamma: Gamma = None  # as in files of before there was one

    must = dict(map_=Is("Lift", n_features_in_="n_features_in_", n_features_out_="n_features_out_"))

    def __init__(
        self,
        kernel: Any = None,
        n_features: Any = None,
        *,
        gamma: Gamma = None,
        eps: float | None = None,
        delta: float = 0.01,
        method: Any = "auto",
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_features = n_features
        self.eps = eps
        self.delta = delta
        self.method = method
        self.random_state = random_state

    def _check(self, X: Any, *, reset: bool) -> Matrix:
        items = isinstance(self.kernel, Kernel) and self.kernel.takes_items
        if items and not isinstance(X, Table) and listed(X) is not None:
            raise ValueError(
                f"{self.kernel!r} has no feature map of items other than by landmarks; use Nystrom(kernel, n_landmarks)."
            )
        return super()._check(X, reset=reset)

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = positioned(resolve(kernel_of(self), X), self._table(X))
        b = Budget(probe(X), None, methods.named(self.method), seed_of(self.random_state))
        self.certificate_: Certificate | None = None
        self.plan_: Plan | None = None
        if self.eps is not None:
            self.map_ = self._promised(b, X)
        elif isinstance(self.n_features, Sequence):
            self.map_ = self._split(b).fit(X)
        else:
            size = self.n_features
            few = size is None and has_few(self.kernel_, b)
            given = None if few else default_features(X.shape[0]) if size is None else _whole(size)
            self.map_ = build(self.kernel_, b.of(given)).fit(X)
        self.n_features_out_ = self.map_.n_features_out_

    def _promised(self, b: Budget, X: Matrix) -> Lift:
        """As many features as eps and delta ask for."""
        s, few = spectrum(self.kernel_), width(self.kernel_, b.X)
        if self.n_features is not None:
            raise ValueError("give n_features, or eps and delta, not both.")
        assert self.eps is not None
        if few is not None and few <= EXACT_LIMIT:
            self.plan_ = Plan(
                "exact", "the kernel has few features, all of them are taken", {"n_features": few}
            )
            return build(self.kernel_, b).fit(X)
        size = (
            LAST_PROBE
            if s is None
            else bounds.fourier_features(X.shape[0], self.eps / (s.amplitude or 1.0), self.delta)
        )
        if size > MAX_PROMISED_FEATURES:
            asked = (
                "no bound is known"
                if s is None
                else f"the bound for eps={self.eps:g} asks for {size:,} features"
            )
            return self._probed(b, X, min(size, LAST_PROBE), self.eps, asked)
        why = f"with probability {1 - self.delta:g} no pair of {X.shape[0]:,} rows is off by more than {self.eps:g} (Hoeffding)"
        self.plan_ = Plan("bound", why, {"n_features": size})
        return build(
            self.kernel_, replace(b, size=size, method=methods.Fourier(frequencies="iid"))
        ).fit(X)

    def _probed(self, b: Budget, X: Matrix, promised: int, eps: float, asked: str) -> Lift:
        """Twice as many features until a probe is satisfied, then a certificate on other pairs."""
        rng, size, tries = np.random.default_rng(b.seed), FIRST_PROBE, 1
        while True:
            phi = build(self.kernel_, b.of(size)).fit(X)
            error, _ = errors(phi, Table(X), *draw_pairs(X.shape[0], SAMPLED_PAIRS, rng))
            rank = order(SAMPLED_PAIRS, 1 - self.delta, 0.995)
            if np.sort(np.abs(error))[rank] <= eps or size >= promised:
                # The j-th try may err with probability delta / 2^j: all of them together with
                # delta.
                found = self.certificate_ = certify(
                    phi, X, 1 - self.delta / 2**tries, random_state=rng
                )
                tries += 1
                if found.bound <= eps or size >= promised:
                    break
            size *= 2
        why = f"{asked}; {size:,} keep 99.5 % of the pairs within {found.bound:.3g}, certified on other pairs"
        self.plan_ = Plan("probe", why, {"n_features": size}, rejected=(("bound", asked),))
        return phi

    def _split(self, b: Budget) -> Lift:
        """The user's own numbers of features for the terms of a sum."""
        terms = self.kernel_.terms if isinstance(self.kernel_, Sum) else (self.kernel_,)
        if len(terms) != len(self.n_features):
            raise ValueError(
                f"n_features has {len(self.n_features)} numbers, but the kernel is a sum of {len(terms)}; give one a term."
            )
        parts = [
            build(t, b.of(_whole(n), i))
            for i, (t, n) in enumerate(zip(terms, self.n_features, strict=True))
        ]
        return Concatenate(parts)

    def _map(self, X: Matrix) -> Matrix:
        return self.map_.transform(X)

    def _names(self, inputs: list[str]) -> list[str]:
        return list(self.map_.get_feature_names_out(inputs))


def _whole(n: object) -> int:
    if isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1:
        return int(n)
    raise ValueError(
        f"n_features must be an integer >= 1 (or a list of them for a sum), got {n!r}."
    )
