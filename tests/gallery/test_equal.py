"""What the scripts of the pages compute is what Mercer computes, to 1e-5, at states drawn at random."""

import functools
import math
import os

import numpy as np
import pytest

from mercer import (
    GaussianProcessRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSVC,
    NadarayaWatson,
    Perceptron,
    SoftNeighborsClassifier,
)
from mercer.gallery import PAGES
from mercer.gallery.pages.kernels import distortions
from mercer.kernels import (
    AllSubsets,
    Anova,
    Cauchy,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    exp,
)
from mercer.lifts import (
    Basis,
    Jumps,
    Monomials,
    Parabolic,
    RandomFourier,
    Taylor,
    ball_to_halfspace,
)
from mercer.strings import Mismatch, Spectrum, Subsequence
from tests.gallery import javascript

BY_SLUG = {page.slug: page for page in PAGES}
RNG = np.random.default_rng(2026)


def _between(low, high):
    return float(np.exp(RNG.uniform(np.log(low), np.log(high))))


def _moved(page, key="X", scale=0.3):
    """The points of a page, dragged about."""
    X = np.array(BY_SLUG[page].numbers()[key])
    return X + scale * RNG.normal(size=X.shape)


def parabolic(s, d):
    half = ball_to_halfspace([s["cx"], s["cy"]], s["r"])
    lifted = Parabolic().fit_transform(np.array(d["X"]))
    inside = lifted @ np.array(half.normal) >= half.offset
    return dict(lifted=lifted, normal=half.normal, offset=half.offset, inside=inside)


def polynomial(s, d):
    X, k = np.array(s["X"]), Polynomial(s["degree"])
    model = KernelRidge(k, alpha=s["alpha"], via="exact", fit_intercept=False).fit(X, d["y"])
    D = Monomials(s["degree"]).fit(X).n_features_out_
    return dict(fitted=model.predict(X), D=D, at=model.predict(s["at"]))


def basis(s, d):
    x = np.array(d["x"])[:, None]
    lift = {
        "line": lambda: Basis(["x"]),
        "cosine": lambda: Basis(["x", "cos"]),
        "powers": lambda: Basis(["x", "square", "cube"]),
        "jump": lambda: Basis(["x"]) + Jumps([s["a"]]),
    }[s["basis"]]()
    model = KernelRidge(lift=lift, alpha=1e-6).fit(x, s["y"])
    return dict(fitted=model.predict(x), r2=model.score(x, s["y"]), w=np.ravel(model.coef_))


def conic(s, d):
    X = np.array(s["X"])
    model = KernelSVC(Polynomial(2, bias=0), C=s["C"], tol=1e-10, max_iter=10_000).fit(X, d["y"])
    return dict(fitted=model.decision_function(X), at=model.decision_function(s["at"]))


def trick(s, d):
    x, z, degree = [s["x"]], [s["z"]], s["degree"]
    phi = Monomials(degree, weights="kernel" if s["weighted"] else None).fit(x)
    features = (phi.transform(x) @ phi.transform(z).T).item()
    D = math.comb(s["d"] + degree, degree)
    return dict(features=features, kernel=Polynomial(degree)(x, z).item(), D=D)


def subsets(s, d):
    x, z = [s["x"][: s["d"]]], [s["z"][: s["d"]]]
    value = (Anova(s["order"]) if s["order"] else AllSubsets())(x, z).item()
    return dict(total=value, kernel=value)


def perceptron(s, d):
    X, y = np.array(d["X"]), np.array(d["y"])
    passes = s["steps"] // len(X)
    model = Perceptron(Linear(), fit_intercept=False, shuffle=False, max_iter=1)
    for _ in range(passes):
        model.partial_fit(X, y, classes=[-1, 1])
    best = KernelSVC(Linear(), C=np.inf, fit_intercept=False, tol=1e-10).fit(X, y)
    margin = 1 / np.linalg.norm(best.dual_coef_ @ X[best.support_])
    bound = (np.linalg.norm(X, axis=1).max() / margin) ** 2
    return dict(w=model.coef_[0], mistakes=model.mistakes_, margin=margin, bound=bound)


def budget(s, d):
    X, y = np.array(d["X"]), np.array(d["y"])
    k, policy = Gaussian(s["bandwidth"]), s["policy"]
    options = {} if policy == "none" else dict(budget=s["budget"], policy=policy)
    model = KernelPerceptron(k, shuffle=False, **options)
    rows = np.arange(s["steps"]) % len(X)
    model.partial_fit(X[rows], y[rows], classes=[-1, 1])
    return dict(fitted=model.decision_function(X), mistakes=model.mistakes_)


def neighbours(s, d):
    model = SoftNeighborsClassifier(Gaussian(s["bandwidth"]), bandwidth="fixed").fit(s["X"], d["y"])
    return dict(
        confidence=model.predict_proba([s["q"]])[0, 1], at=model.predict_proba(s["at"])[:, 1]
    )


def smoother(s, d):
    x, grid = np.array(d["x"])[:, None], np.linspace(0, 10, 201)[:, None]
    left_out = lambda b: NadarayaWatson(Gaussian(b), bandwidth="fixed").fit(x, s["y"])
    off = lambda m: np.mean((m.loo_predictions_ - s["y"]) ** 2)
    model, some = left_out(s["bandwidth"]), [left_out(d["scales"][i]) for i in (0, 20, 40)]
    ends = {f"errors.{i}": off(m) for i, m in zip((0, 20, 40), some, strict=True)}
    return dict(values=model.predict(grid), error=off(model)) | ends


LEAVES = {
    "Gaussian": lambda b: Gaussian(b),
    "Laplace": lambda b: Laplace(b),
    "Matern": lambda b: Matern(b),
    "Periodic": lambda b: Periodic(b, period=1.5),
    "Linear": lambda b: Linear(),
    "Cauchy": lambda b: Cauchy(b),
}
WAYS = {
    "product": lambda a, b: a * b,
    "sum": lambda a, b: a + b,
    "square": lambda a, b: a**2,
    "exp": lambda a, b: exp(a),
    "normalized": lambda a, b: (a + b).normalized(),
}


def algebra(s, d):
    k = WAYS[s["way"]](LEAVES[s["first"]](s["s1"]), LEAVES[s["second"]](s["s2"]))
    G = k(np.array(d["x"])[:, None])
    draws = np.linalg.cholesky(G + 1e-6 * np.eye(len(G))) @ np.array(d["normals"])
    return dict(G=G, values=np.linalg.eigvalsh(G)[::-1], draws=draws.T)


def taylor(s, d):
    phi = Taylor(Gaussian(s["bandwidth"]), degree=s["degree"]).fit([[0.0]])
    x, z = np.array(d["x"])[:, None], [[s["z"]]]
    bound = phi.tail_bound([[max(2, abs(s["z"]))]])
    return dict(
        cut=(phi.transform(x) @ phi.transform(z).T)[:, 0], grid=phi.transform(x), bound=bound
    )


def fourier(s, d):
    X, D = np.array(d["X"]), 8 * 2 ** s["size"]
    angle = np.deg2rad(s["angle"])
    Z = np.linspace(0, 6, 121)[:, None] * [np.cos(angle), np.sin(angle), 0]
    found, k = {}, Gaussian(1.5)
    for kind in ("iid", "design"):
        phi = RandomFourier(k, D, frequencies=kind, random_state=0).fit(X)
        found[kind] = (phi.transform(Z) @ phi.transform(np.zeros((1, 3))).T)[:, 0]
    F = phi.transform(X)
    off = (F @ F.T - k(X))[np.triu_indices(len(X), 1)]
    found["exact"] = k(Z, np.zeros((1, 3)))[:, 0]
    return found | {f"errors.design.{s['size']}.rms": np.sqrt(np.mean(off**2))}


def projection(s, d):
    m, n = (16, 32, 64, 128, 256, 512)[s["size"]], BY_SLUG["projection"].names()
    X = n["points"][s["points"]]
    off = distortions(n["maps"][s["map"]](m).fit_transform(X), X)
    t = math.log(2 / s["delta"])
    low, high = -2 * math.sqrt(t / m), 2 * math.sqrt(t / m) + 2 * t / m
    return dict(values=off, low=low, high=high, rms=np.sqrt(np.mean(off**2)))


def process(s, d):
    k = {
        "matern": lambda b: Matern(b, nu=2.5),
        "gaussian": Gaussian,
        "laplace": Laplace,
        "periodic": lambda b: Periodic(b, period=3.0),
        "linear": lambda b: Polynomial(1),
    }[s["kernel"]](s["bandwidth"])
    x, y = np.transpose(s["points"])
    model = GaussianProcessRegressor(k, noise=s["noise"], prior_mean=0.0, fixed="all")
    grid = np.array(d["grid"])[:, None]
    mean, f = model.fit(x[:, None], y).predict(grid, return_std=True, of="f")
    of_y = model.predict(grid, return_std=True)[1]
    return dict(mean=mean, f=f, y=of_y, evidence=model.log_marginal_likelihood_)


def svm(s, d):
    X = np.array(s["X"])
    found = {}
    kernels = dict(linear=Linear(), cubic=Polynomial(3), gaussian=Gaussian(s["bandwidth"]))
    for name, k in kernels.items():
        model = KernelSVC(k, C=s["C"], fit_intercept=s["bias"], tol=1e-10, max_iter=10_000)
        found[f"{name}.fitted"] = model.fit(X, d["y"]).decision_function(X)
    return found


def ridge(s, d):
    x, grid = np.array(d["x"])[:, None], np.linspace(-1.1, 1.1, 111)[:, None]
    k = Polynomial(s["degree"])
    dual = KernelRidge(k, alpha=s["alpha"], via="exact", fit_intercept=False).fit(x, s["y"])
    lift = Monomials(s["degree"], weights="kernel")
    primal = KernelRidge(lift=lift, alpha=s["alpha"], fit_intercept=False).fit(x, s["y"])
    w = np.ravel(primal.coef_)
    return dict(primal=w, dual=w, one=primal.predict(grid), other=dual.predict(grid))


def rings(s, d):
    X = np.array(d["X"])
    k = Gaussian(d["bandwidths"][s["place"]])
    F = KernelPCA(2, kernel=k, via="exact").fit_transform(X)
    return {"abs scores": np.abs(F)}


def metric(s, d):
    n = BY_SLUG["metric"].names()
    m, rows = n["metrics"][s["round"]], slice(300, 400)
    along = n["X"][rows] @ np.linalg.eigh(m.metric_)[1][:, -1]
    y, p = n["y"][rows], n["predictions"][s["round"]][:100]
    r2 = 1 - np.mean((p - y) ** 2) / np.var(y)
    shares = np.diag(m.metric_) / np.trace(m.metric_)
    return dict(shares=shares, r2=r2) | ({"abs along": np.abs(along)} if s["round"] else {})


def strings(s, d):
    k = {
        "spectrum": lambda: Spectrum(s["k"], alphabet="dna"),
        "mismatch": lambda: Mismatch(s["k"], 1, alphabet="dna"),
        "gapped": lambda: Subsequence(s["k"], decay=s["decay"], alphabet="dna"),
    }[s["kind"]]()
    x, z = [s["x"]], [s["z"]]
    return dict(value=k(x, z).item(), alike=k.normalized()(x, z).item())


def sink(s, d):
    n = BY_SLUG["sink"].names()
    path = n["model"].path_
    at = 2 * s["place"]
    effects = np.abs(path.coef[at, 0] * n["F"].std(0)[path.ids])
    strongest = np.sort(effects)[::-1][:3]
    return {"size": path.sizes[at], "first three": strongest[strongest > 0]}


def slips(s, d):
    slip = d["slips"][s["place"]]
    return dict(gap=np.abs(np.array(slip["note"]) - np.array(slip["truth"])).max())


def playground(s, d):
    X, y = np.array(s["classes"])[:, :2], np.array(s["classes"])[:, 2]
    k = eval(s["text"], vars(__import__("mercer.kernels", fromlist=["*"])))
    model = KernelSVC(k, C=s["C"], tol=1e-10, max_iter=10_000).fit(X, y)
    F = KernelPCA(2, kernel=k, via="exact").fit_transform(X)
    return {"G": k(X), "fitted": model.decision_function(X), "abs lifted": np.abs(F)}


def _word(n):
    return "".join(RNG.choice(list("ACGTacgtN"), n, p=[0.2, 0.2, 0.2, 0.2, *[0.04] * 5]))


def _classes():
    labels = np.r_[1, -1, RNG.choice([-1, 1], 10)]
    return np.column_stack([RNG.uniform(-2.5, 2.5, (12, 2)), labels])


EXPRESSIONS = (
    "0.5 * Gaussian(bandwidth=1.0) + Linear() * Polynomial(degree=2)",
    "Matern(1.5, nu=2.5) + 0.1 * Linear()",
    "exp(0.3 * Linear()).normalized() + Gaussian(0.6).on_columns([0])",
)
GRID = RNG.uniform(-2, 2, (15, 2))
STATES = {
    "parabolic": lambda: dict(cx=RNG.uniform(-2, 2), cy=RNG.uniform(-2, 2), r=RNG.uniform(0, 2)),
    "polynomial": lambda: dict(
        degree=int(RNG.integers(1, 10)),
        alpha=_between(1e-2, 10),
        X=_moved("polynomial"),
        at=GRID / 2,
    ),
    "basis": lambda: dict(
        basis=str(RNG.choice(["line", "cosine", "powers", "jump"])),
        a=RNG.uniform(-3, 3),
        y=_moved("basis", "y"),
    ),
    "conic": lambda: dict(C=_between(0.1, 10), X=_moved("conic"), at=GRID),
    "trick": lambda: dict(
        degree=int(RNG.integers(1, 7)),
        d=int(RNG.integers(2, 50)),
        weighted=bool(RNG.integers(2)),
        x=RNG.uniform(-1.5, 1.5, 4),
        z=RNG.uniform(-1.5, 1.5, 4),
    ),
    "subsets": lambda: dict(
        d=int(RNG.integers(4, 7)),
        order=int(RNG.integers(0, 5)),
        x=RNG.uniform(-1.5, 1.5, 6),
        z=RNG.uniform(-1.5, 1.5, 6),
    ),
    "perceptron": lambda: dict(steps=40 * int(RNG.integers(1, 13))),
    "budget": lambda: dict(
        steps=int(RNG.integers(20, 600)),
        budget=int(RNG.integers(2, 40)),
        policy=str(RNG.choice(["none", "oldest", "projectron"])),
        bandwidth=_between(0.2, 1.5),
    ),
    "neighbours": lambda: dict(
        bandwidth=_between(0.1, 5), q=RNG.uniform(-3, 3, 2), X=_moved("neighbours"), at=GRID
    ),
    "smoother": lambda: dict(bandwidth=_between(0.1, 5), y=_moved("smoother", "y")),
    "algebra": lambda: dict(
        first=str(RNG.choice(list(LEAVES))),
        second=str(RNG.choice(list(LEAVES))),
        way=str(RNG.choice(list(WAYS))),
        s1=_between(0.15, 0.8),
        s2=_between(0.15, 0.8),
    ),
    "taylor": lambda: dict(
        degree=int(RNG.integers(0, 25)), bandwidth=_between(0.4, 4), z=RNG.uniform(-3, 3)
    ),
    "fourier": lambda: dict(size=int(RNG.integers(0, 8)), angle=RNG.uniform(0, 180)),
    "projection": lambda: dict(
        points=str(RNG.choice(["dense", "spikes"])),
        map=str(RNG.choice(["gaussian", "one", "eight"])),
        size=int(RNG.integers(0, 6)),
        delta=_between(1e-3, 0.5),
    ),
    "process": lambda: dict(
        kernel=str(RNG.choice(["matern", "gaussian", "laplace", "periodic", "linear"])),
        bandwidth=_between(0.3, 3),
        noise=_between(0.01, 1),
        points=np.column_stack([np.sort(RNG.uniform(-5, 5, 9)), RNG.normal(size=9)]),
    ),
    "svm": lambda: dict(
        C=_between(0.05, 20),
        bandwidth=_between(0.2, 2),
        bias=bool(RNG.integers(2)),
        X=_moved("svm", scale=0.2),
    ),
    "ridge": lambda: dict(
        degree=int(RNG.integers(1, 15)), alpha=_between(1e-3, 10), y=_moved("ridge", "y")
    ),
    "rings": lambda: dict(place=int(RNG.integers(2, 14))),
    "sink": lambda: dict(place=int(RNG.integers(0, 50))),
    "metric": lambda: dict(round=int(RNG.integers(0, 5)), direction=0),
    "strings": lambda: dict(
        x=_word(18),
        z=_word(14),
        kind=str(RNG.choice(["spectrum", "mismatch", "gapped"])),
        k=int(RNG.integers(2, 5)),
        decay=RNG.uniform(0.2, 1),
    ),
    "slips": lambda: dict(place=int(RNG.integers(0, 16))),
    "playground": lambda: dict(
        mode="classes", text=str(RNG.choice(EXPRESSIONS)), C=_between(0.1, 5), classes=_classes()
    ),
}


@functools.cache
def data(slug):
    return BY_SLUG[slug].numbers()


def test_every_page_has_a_twin():
    assert set(STATES) == set(BY_SLUG)


@pytest.mark.parametrize("slug", STATES)
def test_the_script_computes_what_mercer_does(slug):
    states = [
        javascript.plain(STATES[slug]())
        for _ in range(8 if os.environ.get("MERCER_TEST_ALL") == "1" else 2)
    ]
    for state, found in zip(states, javascript.compute(slug, states, data(slug)), strict=True):
        for name, value in globals()[slug](state, data(slug)).items():
            np.testing.assert_allclose(
                _picked(found, name, np.shape(value)),
                np.asarray(value, float),
                rtol=1e-5,
                atol=1e-5,
                err_msg=f"{slug} {state} {name}",
            )


def _picked(found, name, shape):
    """A value by its path; signs of eigenvectors are free."""
    if name == "first three":
        return [abs(f["effect"]) for f in found["kept"][: shape[0]]]
    if name == "abs lifted":
        return np.abs(np.array(found["lifted"]["scores"])[:, :2])
    if name.startswith("abs "):
        value = np.abs(np.array(found[name[4:]], float))
        return value[:, : shape[1]] if value.ndim == 2 else value
    value = functools.reduce(
        lambda v, key: v[int(key)] if isinstance(v, list) else v[key], name.split("."), found
    )
    return np.asarray(value, float)
