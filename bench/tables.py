"""Feature machines on tables, against boosted trees: the same training and test rows, five splits.

At most FEW training rows of every table of the data folder and of scikit-learn: LightGBM at its
defaults, LightGBM tuned (30 random settings, early stopping on a fifth, refitted), and
HistGradientBoosting, `xrfm` too where it is installed; then all rows of three tables within SECONDS.
Test rows choose nothing. MERCER_BENCH_SPLITS and MERCER_BENCH_TABLES (names, commas between) make
it shorter.
"""

import os
import tarfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from time import process_time

import numpy as np
from scipy.stats import binomtest
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from bench import data
from bench.harness import Measure
from mercer import FeatureMachineClassifier, FeatureMachineRegressor

FEW, TEST, SECONDS = 2_000, 2_000, 60.0
SPLITS = int(os.environ.get("MERCER_BENCH_SPLITS", "5"))
CODES = {"adult": (1, 3, 5, 6, 7, 8, 9, 13)}  # columns that are names of categories
UCI = ("concrete", "energy", "kin8nm", "power-plant", "protein-tertiary-structure")
SKLEARN = {
    "diabetes": datasets.load_diabetes,
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
}
NAMES = (
    "houses",
    "adult",
    "covtype",
    "kin40k",
    "pol",
    "elevators",
    *UCI,
    "letter",
    "ijcnn1",
    *SKLEARN,
)
ALL_ROWS = {"houses": (None, 0.848), "adult": (None, 0.867), "covtype": (100_000, 0.925)}


@dataclass(frozen=True)
class Rows:
    """Training and test rows of a split."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    numeric: bool


@cache
def table(name):
    """(X, y, whether y is a number); categories as indicators."""
    if name in SKLEARN:
        X, y = SKLEARN[name](return_X_y=True)
        return X, y, name == "diabetes"
    if name in ("kin40k", "pol", "elevators"):
        rows = np.loadtxt(data.path(f"uci_cv/{name}/data.csv.gz"), delimiter=",")
        return rows[:, :-1], rows[:, -1], True
    if name in UCI:
        return _uci(name)
    if name in ("letter", "ijcnn1"):
        parts = (
            ("letter.scale.xz", "letter.scale.t.xz")
            if name == "letter"
            else ("ijcnn1.trn.bz2", "ijcnn1.t.bz2")
        )
        both = [data.libsvm(part, 16 if name == "letter" else 22, dense=True) for part in parts]
        return np.vstack([X for X, _ in both]), np.concatenate([y for _, y in both]), False
    file = {"houses": "537_houses.tsv.gz", "adult": "adult.tsv.gz", "covtype": "covtype.csv.xz"}[
        name
    ]
    frame = data.table(file)
    target = "Cover_Type" if name == "covtype" else "target"
    X = frame.drop(columns=target).to_numpy(np.float64)
    codes = CODES.get(name, ())
    rest = [j for j in range(X.shape[1]) if j not in codes]
    hot = [X[:, [j]] == np.unique(X[:, j]) for j in codes]
    return np.hstack([X[:, rest], *hot]), frame[target].to_numpy(), name == "houses"


def _uci(name):
    with tarfile.open(data.path(f"uci_splits/{name}.tar.xz")) as archive:
        folder = f"UCI_Datasets/{name}/data"

        def read(file):
            return np.loadtxt(archive.extractfile(f"{folder}/{file}"))

        rows = read("data.txt")
        columns, target = read("index_features.txt").astype(int), int(read("index_target.txt"))
    return rows[:, columns], rows[:, target], True


def split(name, seed, train=FEW, test=TEST):
    X, y, numeric = table(name)
    y = y if numeric else np.unique(y, return_inverse=True)[1]  # LightGBM codes no validation rows
    order = np.random.default_rng(seed).permutation(len(y))
    kept = min(test or 20_000, len(y) // 5)
    a, b = order[kept : kept + train] if train else order[kept:], order[:kept]
    return Rows(X[a], y[a], X[b], y[b], numeric)


# models
def machine(rows, seed, seconds=None):
    made = FeatureMachineRegressor if rows.numeric else FeatureMachineClassifier
    return made(time_limit=seconds, random_state=seed).fit(rows.X, rows.y)


def histogram(rows, seed):
    made = HistGradientBoostingRegressor if rows.numeric else HistGradientBoostingClassifier
    return made(random_state=seed).fit(rows.X, rows.y)


def lightgbm(rows, seed, **settings):
    import lightgbm as lgb

    made = lgb.LGBMRegressor if rows.numeric else lgb.LGBMClassifier
    return made(verbose=-1, n_jobs=2, random_state=seed, **settings).fit(rows.X, rows.y)


def tuned(rows, seed, tries=30):
    """The best of random settings, each stopped early on a fifth of the rows, fitted to all."""
    import lightgbm as lgb

    rng, n = np.random.default_rng(seed), len(rows.y)
    order = rng.permutation(n)
    out, fitted = order[: n // 5], order[n // 5 :]
    made = lgb.LGBMRegressor if rows.numeric else lgb.LGBMClassifier
    best, chosen = np.inf, {}
    for _ in range(tries):
        settings = dict(
            num_leaves=int(np.exp(rng.uniform(np.log(4), np.log(128)))),
            learning_rate=float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))),
            min_child_samples=int(np.exp(rng.uniform(np.log(3), np.log(60)))),
            reg_lambda=float(np.exp(rng.uniform(np.log(1e-3), np.log(30)))),
            colsample_bytree=float(rng.uniform(0.4, 1)),
            subsample=float(rng.uniform(0.5, 1)),
            subsample_freq=1,
        )
        m = made(n_estimators=1000, verbose=-1, n_jobs=2, random_state=seed, **settings)
        m.fit(
            rows.X[fitted],
            rows.y[fitted],
            eval_X=rows.X[out],
            eval_y=rows.y[out],
            callbacks=[lgb.early_stopping(30, verbose=False)],
        )
        loss = float(next(iter(m.best_score_["valid_0"].values())))
        if loss < best:
            best, chosen = loss, {**settings, "n_estimators": max(1, m.best_iteration_)}
    return lightgbm(rows, seed, **chosen)


def xrfm(rows, seed, tries=24):
    """xRFM over its authors' space (four fifths of it p-norms below 2), each setting fitted to four
    fifths of the rows and judged on the others; the best is fitted to all rows."""
    from xrfm.rfm_src import RFM

    rng, n = np.random.default_rng(seed), len(rows.y)
    order = rng.permutation(n)
    out, fitted = order[: n // 5], order[n // 5 :]
    inputs = Standard.of(rows.X)
    X, Y = inputs(rows.X), _targets(rows)
    best, chosen = np.inf, None
    for _ in range(tries):
        kernel, fit = _xrfm_setting(rng)
        m = RFM(device="cpu", **kernel)
        m.fit((X[fitted], Y[fitted]), (X[out], Y[out]), iters=5, tuning_metric="mse", **fit)
        loss = float(((m.predict(X[out]) - Y[out]) ** 2).mean())
        if loss < best:
            best, chosen = loss, (kernel, fit, m.best_iter)
    kernel, fit, rounds = chosen
    m = RFM(device="cpu", **kernel)
    still = dict(return_best_params=False, early_stop_rfm=False)
    m.fit((X, Y), (X[out], Y[out]), iters=rounds, **still, **fit)
    return Recursive(m, inputs, rows)


def _xrfm_setting(rng):
    q = rng.uniform(0.7, 1.4)
    norm = dict(kernel="lpq", norm_p=float(q + (2 - q) * rng.uniform(0, 0.8)))
    kernel = dict(
        **(norm if rng.random() < 0.8 else dict(kernel="l2")),
        exponent=float(q),
        bandwidth=float(np.exp(rng.uniform(np.log(0.5), np.log(200)))),
        diag=bool(rng.random() < 0.5),
    )
    return kernel, dict(reg=float(np.exp(rng.uniform(np.log(1e-6), np.log(10)))), verbose=False)


def _targets(rows):
    """Standard units, or one column of 0 and 1 for every class (one alone for two)."""
    import torch

    if rows.numeric:
        y = ((rows.y - rows.y.mean()) / rows.y.std())[:, None]
    else:
        y = np.eye(rows.y.max() + 1)[rows.y]
        y = y[:, 1:] if y.shape[1] == 2 else y
    return torch.tensor(y, dtype=torch.float32)


@dataclass(frozen=True)
class Standard:
    """Columns in standard units, indicators as they are, as xRFM's authors advise."""

    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, X):
        codes = np.isin(X, (0, 1)).all(axis=0)
        mean, spread = X.mean(axis=0), X.std(axis=0)
        return cls(np.where(codes, 0, mean), np.where(codes | (spread == 0), 1, spread))

    def __call__(self, X):
        import torch

        return torch.tensor((X - self.mean) / self.spread, dtype=torch.float32)


@dataclass(frozen=True)
class Recursive:
    """A fitted xRFM with scikit-learn's score."""

    machine: object
    inputs: Standard
    rows: Rows

    def score(self, X, y):
        f = self.machine.predict(self.inputs(X)).numpy()
        if self.rows.numeric:
            f = f[:, 0] * self.rows.y.std() + self.rows.y.mean()
            return 1 - ((y - f) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        return float(np.mean((f[:, 0] > 0.5 if f.shape[1] == 1 else f.argmax(axis=1)) == y))


PEERS = {
    "LightGBM": (lightgbm, "lightgbm"),
    "LightGBM, tuned": (tuned, "lightgbm"),
    "HistGradientBoosting": (histogram, "sklearn"),
    "xRFM": (xrfm, "xrfm"),
}


def present():
    """The peers that are installed; those that are not are named."""
    found = {name: make for name, (make, package) in PEERS.items() if find_spec(package)}
    for name in PEERS.keys() - found:
        print(f"skipped: {name} is not installed (pip install {PEERS[name][1]})", flush=True)
    return found


def few_rows(names, splits=SPLITS):
    """Tables at few rows: mean scores, how many tables are won, coverage, CPU seconds."""
    peers = present()
    won = {name: [] for name in peers}
    seconds, of_peers = [], {name: [] for name in peers}
    for name in names:
        ours, theirs, inside = [], {p: [] for p in peers}, []
        for seed in range(splits):
            rows = split(name, seed)
            start = process_time()
            m = machine(rows, seed)
            seconds.append((process_time() - start) * FEW / max(len(rows.y), FEW))
            ours.append(m.score(rows.X_test, rows.y_test))
            if rows.numeric:
                low, high = m.predict_interval(rows.X_test)
                inside.append(
                    (
                        np.mean((low <= rows.y_test) & (rows.y_test <= high)),
                        len(rows.y_test),
                        len(rows.y) // 5,
                    )
                )
            for p, make in peers.items():
                start = process_time()
                theirs[p].append(make(rows, seed).score(rows.X_test, rows.y_test))
                of_peers[p].append(process_time() - start)
        for p, scores in theirs.items():
            gap = np.subtract(ours, scores)
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            won[p].append(gap.mean())
            title = f"{name}, at most {FEW:,} rows: mean score beside {p}; difference {gap.mean():+.4f} +- {error:.4f}"
            yield Measure(
                title, float(np.mean(ours)), float(np.mean(scores)), lower_is_better=False
            )
        if inside:
            yield covered(name, inside)
    for p, gaps in won.items():
        yield Measure(
            f"share of {len(gaps)} tables better than {p}",
            float(np.mean(np.array(gaps) > 0)),
            0.5,
            lower_is_better=False,
        )
    yield Measure("CPU seconds of a search with intervals, median", float(np.median(seconds)), 10.0)
    for p, spent in of_peers.items():
        yield Measure(
            f"CPU seconds, median, beside {p}", float(np.median(seconds)), float(np.median(spent))
        )


def covered(name, inside):
    """Pooled coverage of 90 % intervals; a binomial test that counts the calibration rows."""
    share = float(np.average([s for s, _, _ in inside], weights=[m for _, m, _ in inside]))
    test, kept = sum(m for _, m, _ in inside), sum(c for _, _, c in inside)
    n = int(1 / (1 / test + 1 / kept))  # rows that would vary as much
    p = binomtest(round(share * n), n, 0.9).pvalue
    return Measure(
        f"{name}: coverage of 90 % intervals, p = {p:.3f}", share, 0.9, lower_is_better=False
    )


def all_rows(name, splits=1):
    most, target = ALL_ROWS[name]
    for seed in range(splits):
        rows = split(name, seed, most and int(0.8 * most), None)
        yield Measure(
            f"{name}, {len(rows.y):,} rows, {SECONDS:g} s, split {seed}",
            machine(rows, seed, SECONDS).score(rows.X_test, rows.y_test),
            target,
            lower_is_better=False,
        )


def cases():
    chosen = os.environ.get("MERCER_BENCH_TABLES")
    names = chosen.split(",") if chosen else NAMES
    yield from few_rows(names)
    for name in ALL_ROWS:
        if name in names:
            yield from all_rows(name)
