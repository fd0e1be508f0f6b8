"""A step of a Gaussian process's marginal likelihood on a GPU, with its slopes: 20,000 rows beside
GPyTorch (float32, its defaults), 200,000 rows alone; log p(y) beside that of a Cholesky factor in
float64.

`./do bench gpu_gp`, on a machine with a GPU; about a minute. `MERCER_BENCH_ROWS=2000` leaves out
larger tables.
"""

import math
import os
import time
from collections.abc import Iterator

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.gp.quadrature import estimated_likelihood

ROWS = ((2_000, None), (20_000, None), (200_000, 20.0))  # and the seconds asked for
COLUMNS, NOISE = 10, 0.1
STEPS = 3


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_gp needs a GPU: {why}")
    most = float(os.environ.get("MERCER_BENCH_ROWS", "inf"))
    for n, asked in ROWS:
        if n <= most:
            yield _step(n, asked)


def _step(n: int, asked: float | None) -> Measure:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, COLUMNS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + math.sqrt(NOISE) * rng.normal(size=n)
    gpu = "cpu" if interpreted() else "cuda"
    kernel, rows = Gaussian(math.sqrt(COLUMNS)), Table(X)

    def ours():
        return estimated_likelihood(kernel, rows, y[:, None], NOISE, 1.0, gpu=gpu)

    found, took = _timed(ours)
    quality = None
    if n <= 20_000:
        exact = _cholesky(X, y, gpu)
        told = abs(found.log - exact) / n
        quality = Quality("error of log p a row", told, 0.005, higher_is_better=False)
    peer = asked if asked is not None else _gpytorch(X, y, gpu)
    target = 1.0 if asked is not None else 3.0 if n == 20_000 else None
    name = f"likelihood and slopes, n = {n:,}, d = {COLUMNS}"
    name += " (peer: seconds asked for)" if asked is not None else " (peer: GPyTorch)"
    return Measure(name, took, peer, target, "s", quality=quality)


def _cholesky(X, y, device) -> float:
    """log p(y) exactly."""
    import torch

    T = torch.from_numpy(X).to(device)
    K = torch.exp(-0.5 / COLUMNS * torch.cdist(T, T).square_())
    K.diagonal().add_(NOISE)
    L = torch.linalg.cholesky(K)
    z = torch.linalg.solve_triangular(L, torch.from_numpy(y).to(device)[:, None], upper=False)
    logdet = 2 * float(L.diagonal().log().sum())
    return -0.5 * (float(z.square().sum()) + logdet + len(y) * math.log(2 * math.pi))


def _gpytorch(X, y, device) -> float | None:
    """Seconds of one step there."""
    try:
        import gpytorch
    except ImportError:
        return None
    import torch

    x, t = (torch.from_numpy(A).float().to(device) for A in (X, y))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, t, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.RBFKernel()

        def forward(self, rows):
            return gpytorch.distributions.MultivariateNormal(self.mean(rows), self.kernel(rows))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Model(likelihood).to(device)
    likelihood.noise, model.kernel.lengthscale = NOISE, math.sqrt(COLUMNS)
    model.train()
    likelihood.train()
    of = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def step():
        model.zero_grad()
        loss = -of(model(x), t)
        loss.backward()
        return float(loss)

    return _timed(step)[1]


def _timed(f):
    """The result, and the median of some steps after one that compiles."""
    import torch

    times = []
    for _ in range(1 if interpreted() else STEPS + 1):
        start = time.perf_counter()
        out = f()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return out, float(np.median(times[1:] or times))
