"""Sparse models against scikit-learn's lasso, with folds and without, and the logistic paths of
liblinear, and of celer and skglm where they are installed; worst relative gaps (of the objective, to
the variance of y) beside the times."""

import json
import lzma
import warnings
from functools import cache
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LassoCV, LogisticRegression, lasso_path
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures

from bench import data
from bench.harness import Case, Quality
from mercer import SparseClassifier, SparseRegressor
from mercer.lifts import Identity

EPS, N_ALPHAS, TOL = 1e-3, 100, 1e-6


def cubic(X):
    """All products of up to three columns, which are brought to [-1, 1] first."""
    low, high = X.min(0), X.max(0)
    return PolynomialFeatures(3, include_bias=False).fit_transform(2 * (X - low) / (high - low) - 1)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return cubic(X), y


def houses():
    table = pd.read_csv(data.path("tables/537_houses.tsv.gz"), sep="\t").to_numpy(np.float64)
    return cubic(table[:, :-1]), table[:, -1]


def worst_gap(F, y, alphas, B, b0):
    """Of the models of a path: what each lacks at most, relative to the variance of y."""
    C, r, worst = F - F.mean(0), y - y.mean(), 0.0
    for a, b, at in zip(alphas, B, b0, strict=True):
        residual = y - F @ b - at
        residual -= residual.mean()
        scale = min(1.0, a / np.abs(C.T @ residual / len(y)).max())
        primal = np.mean(residual**2) / 2 + a * np.abs(b).sum()
        dual = scale * np.mean(residual * r) - scale**2 * np.mean(residual**2) / 2
        worst = max(worst, (primal - dual) / np.mean(r**2))
    return worst


def path(name, F, y, target):
    largest = np.abs((F - F.mean(0)).T @ (y - y.mean())).max() / len(y)
    alphas = np.geomspace(largest, EPS * largest, N_ALPHAS)

    def ours():
        m = SparseRegressor(Identity(), alpha=alphas[-1], n_alphas=N_ALPHAS, scale=None).fit(F, y)
        return m.path_

    def peer():
        C, r = F - F.mean(0), y - y.mean()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return lasso_path(C, r, alphas=alphas, precompute=True, tol=TOL, max_iter=100_000)

    def check(p, q):
        B = np.zeros((N_ALPHAS, F.shape[1]))
        B[:, p.ids] = p.coef[:, 0]
        mine = worst_gap(F, y, p.alphas, B, p.intercept[:, 0])
        theirs = worst_gap(F, y, q[0], q[1].T, y.mean() - q[1].T @ F.mean(0))
        return Quality("worst relative gap", mine, max(theirs, TOL), higher_is_better=False)

    shape = f"{F.shape[0]:,} x {F.shape[1]}"
    return Case(f"path of 100, {name}, {shape}", ours, peer, check, target, repeats=3)


def folds(name, F, y, target):
    cv = list(KFold(5, shuffle=True, random_state=0).split(F))

    def ours():
        return SparseRegressor(Identity(), scale=None, rule="min", refit=False, cv=cv).fit(F, y)

    def peer():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return LassoCV(eps=EPS, alphas=N_ALPHAS, cv=cv, tol=TOL, max_iter=100_000).fit(F, y)

    def check(m, p):
        mine, theirs = m.cv_losses_.mean(1).min(), p.mse_path_.mean(1).min()
        return Quality("least mean loss", mine, theirs, 1e-3 * theirs, higher_is_better=False)

    shape = f"{F.shape[0]:,} x {F.shape[1]}"
    return Case(f"5 folds, {name}, {shape}", ours, peer, check, target, repeats=1)


def small(seed):
    """A linear model of few rows, of a shape drawn by the seed."""
    rng = np.random.default_rng(seed)
    n, d = (200, 10) if not seed else (int(rng.integers(50, 400)), int(rng.integers(3, 25)))
    X = rng.normal(size=(n, d)) * rng.lognormal(size=d)
    y = X @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + rng.normal(size=n)

    def check(m, p):
        return Quality("R^2", m.score(X, y), p.score(X, y), slack=0.05)

    return Case(
        f"whole fit, linear, n={n}, d={d}",
        lambda: SparseRegressor(Identity()).fit(X, y),
        lambda: LassoCV(cv=5).fit(X, y),
        check,
        1.0,
    )


@cache
def reviews(n_features=2**18):
    """Words and pairs of words of film reviews, 25,000 rows of CSR."""
    with lzma.open(data.path("text/aclimdb-train.jsonl.xz"), "rt") as stream:
        rows = [json.loads(line) for line in stream]
    texts, y = [r["text"] for r in rows], np.array([r["y"] for r in rows])
    words = HashingVectorizer(ngram_range=(1, 2), n_features=n_features, alternate_sign=False)
    return words.transform(texts), y


def by_liblinear(X, codes, alphas):
    """It has no path: every penalty starts anew."""
    options = dict(l1_ratio=1.0, solver="liblinear", tol=1e-3, intercept_scaling=100.0)
    models = [LogisticRegression(C=1 / (len(codes) * a), **options).fit(X, codes) for a in alphas]
    return np.array([m.coef_[0] for m in models]), [m.intercept_[0] for m in models]


def by_celer(X, codes, alphas):
    """It has no intercept, so its objective is another."""
    from celer import celer_path

    signs = 2.0 * codes - 1
    found = celer_path(X.tocsc(), signs, "logreg", alphas=len(codes) * alphas, tol=1e-4)
    return found[1].T, np.zeros(len(alphas))


def by_skglm(X, codes, alphas):
    """Each penalty from the one before."""
    from skglm.estimators import SparseLogisticRegression

    m, F, ends = SparseLogisticRegression(tol=1e-4, warm_start=True), X.tocsc(), []
    for a in alphas:
        m.set_params(alpha=float(a)).fit(F, codes)
        ends.append((m.coef_[0].copy(), float(np.ravel(m.intercept_)[0])))
    return np.array([b for b, _ in ends]), [b0 for _, b0 in ends]


LOGISTIC = {"liblinear": by_liblinear, "celer": by_celer, "skglm": by_skglm}


def logistic(peer, n_alphas=10, eps=0.1):
    """The same penalties for both."""
    X, y = reviews()
    codes = np.unique(y, return_inverse=True)[1]
    largest = np.abs(X.T @ (codes - codes.mean())).max() / len(y)
    alphas = np.geomspace(largest, eps * largest, n_alphas)

    def ours():
        m = SparseClassifier(alpha=alphas[-1], n_alphas=n_alphas, scale=None, tol=1e-4)
        return m.fit(X, y).path_

    def theirs():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LOGISTIC[peer](X, codes, alphas)

    def value(b, b0, a):
        f = X @ b + b0
        return np.mean(np.logaddexp(0, f) - codes * f) + a * np.abs(b).sum()

    def check(p, q):
        B = np.zeros((n_alphas, X.shape[1]))
        B[:, p.ids] = p.coef[:, 0]
        mine = [value(b, b0, a) for b, b0, a in zip(B, p.intercept[:, 0], alphas, strict=True)]
        others = [value(b, b0, a) for b, b0, a in zip(*q, alphas, strict=True)]
        more = float(np.max(np.array(mine) - others))
        return Quality("worst objective above the peer's", more, 0.0, 1e-4, higher_is_better=False)

    def warmup():
        some = slice(None, None, 50)
        SparseClassifier(alpha=1e-3, n_alphas=3, scale=None).fit(X[some], y[some])
        LOGISTIC[peer](X[some], codes[some], alphas[:2])

    size = f"{X.shape[0]:,} x {X.shape[1]:,}"
    name = f"logistic path of {n_alphas}, IMDB words 1-2, {size}, {peer}"
    return Case(name, ours, theirs, check, 1.0, repeats=1, warmup=warmup)


def cases():
    yield path("cubic diabetes", *diabetes(), 20.0)
    yield path("cubic houses", *houses(), 5.0)
    yield folds("cubic diabetes", *diabetes(), 10.0)
    yield folds("cubic houses", *houses(), 5.0)
    yield from (small(seed) for seed in range(4))
    for peer in LOGISTIC:
        if peer == "liblinear" or find_spec(peer):
            yield logistic(peer)
