"""Kernels of strings against counted words and strkernels, and machines over them on real sequences.

strkernels is compared where it is installed; its subsequences are those of 1 to p letters, so ours is
the sum of kernels. C. elegans is split by chromosome: windows of one overlap, and a random split leaks.
"""

import bz2
import importlib
import lzma
from functools import cache, partial
from itertools import product
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import normalize

from bench import data
from bench.harness import Case, Measure
from mercer import KernelSVC
from mercer.kernels import exp
from mercer.strings import Gapped, Spectrum, Subsequence, WeightedDegree

PROTEIN = "ACDEFGHIKLMNPQRSTVWY"
FACTORS, PENALTIES = (2.0, 4.0), (1.0, 3.0)  # of splice, chosen on training rows


def drawn(n, length, letters):
    rng = np.random.default_rng(0)
    return ["".join(row) for row in rng.choice(list(letters), (n, length))]


@cache
def fasta(name):
    """(strings, headers), wrapped lines joined."""
    opened = (bz2 if name.endswith("bz2") else lzma).open(data.path(f"strings/{name}"), "rt")
    with opened as lines:
        parts = [part.split("\n", 1) for part in lines.read().split(">")[1:]]
    return [body.replace("\n", "") for _, body in parts], [head.strip() for head, _ in parts]


def labelled(name):
    X, heads = fasta(name)
    return X, np.array([int(h) for h in heads])


def equal(ours, peer):
    return None if np.allclose(ours, peer, rtol=1e-5) else "values differ"


def spectra():
    for title, n, letters, target in (
        ("DNA, 5,000 of 300", 5000, "ACGT", 30.0),
        ("20 letters, 2,000 of 300", 2000, PROTEIN, 10.0),
    ):
        X = drawn(n, 300, letters)
        count = CountVectorizer(analyzer="char", ngram_range=(5, 5), lowercase=False)

        def sparse(X=X, count=count):
            F = count.fit_transform(X).astype(np.float64)
            return (F @ F.T).toarray()

        def dense(X=X, count=count):
            F = count.fit_transform(X).astype(np.float32).toarray()
            return F @ F.T

        k = Spectrum(5, alphabet=letters)
        yield Case(f"Spectrum(5) Gram, {title}", lambda k=k, X=X: k(X), sparse, equal, target, 2)
        if letters == "ACGT":
            yield Case(
                f"Spectrum(5) Gram, {title}, dense counts",
                lambda k=k, X=X: k(X),
                dense,
                equal,
                4.0,
                3,
            )


def strkernels():
    if importlib.util.find_spec("strkernels") is None:
        return
    theirs = importlib.import_module("strkernels")

    def peer(kernel, X):
        return lambda: np.asarray(kernel(np.array(X), np.array(X)))

    for title, letters, target in (("DNA", "ACGT", 50.0), ("20 letters", PROTEIN, 10.0)):
        X = drawn(200, 100, letters)
        k = sum(Subsequence(p, alphabet=letters) for p in (1, 2, 3)).normalized()
        other = theirs.SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5)
        yield Case(
            f"Subsequence to 3 letters, 200 of 100, {title}",
            lambda k=k, X=X: k(X),
            peer(other, X),
            equal,
            target,
            3,
        )
    X = drawn(1000, 100, "ACGT")
    k = WeightedDegree(3, alphabet="dna").normalized()
    other = theirs.WeightedDegreeStringKernel(degree=3)
    yield Case("WeightedDegree(3), 1,000 of 100", lambda: k(X), peer(other, X), equal, 3.0, 3)


def splice():
    with lzma.open(data.path("strings/uci_splice.data.xz"), "rt") as lines:
        rows = [[part.strip() for part in line.split(",")] for line in lines if line.strip()]
    X, y = [row[2] for row in rows], np.array([row[0] for row in rows])
    k = WeightedDegree(3, alphabet="dna").normalized()
    grams = {f: exp(f * k).normalized()(X) for f in FACTORS}
    right = 0
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        f, C = max(product(FACTORS, PENALTIES), key=partial(_inner_score, grams, y, train))
        m = KernelSVC("precomputed", C=C).fit(grams[f][np.ix_(train, train)], y[train])
        right += int(np.sum(m.predict(grams[f][np.ix_(test, train)]) == y[test]))
    yield Measure("splice, 10 folds, accuracy %", 100 * right / len(y), 97.0, 1.0, "%", False)


def _inner_score(grams, y, train, setting):
    """Of a factor and a penalty, by folds of training rows alone."""
    f, C = setting
    K = grams[f][np.ix_(train, train)]
    return cross_val_score(KernelSVC("precomputed", C=C), K, y[train], cv=3).mean()


def machines():
    runs = (
        ("EP300, Gapped(10, 4)", "EP300", Gapped(10, 4, alphabet="dna"), 0.9890),
        (
            "EP300, Gapped(10, 4), both strands",
            "EP300",
            Gapped(10, 4, alphabet="dna", strands="both"),
            0.9900,
        ),
        ("SCOP 1.34, Gapped(6, 2)", "1.34", Gapped(6, 2, alphabet="protein"), 0.999),
    )
    for title, name, k, least in runs:
        (X, y), (Z, t) = (labelled(f"{name}.{part}.fasta.xz") for part in ("train", "test"))
        start = perf_counter()
        scores = KernelSVC(k.normalized(), C=1.0).fit(X, y).decision_function(Z)
        took = perf_counter() - start
        yield Measure(f"{title}: area under ROC", roc_auc_score(t, scores), least, 1.0, "", False)
        yield Measure(f"{title}: average precision", average_precision_score(t, scores), None)
        yield Measure(f"{title}: seconds", took, 5.0, 1.0, "s")


def elegans():
    """Words at places near the site, which all windows have in their middle, beside words in regions
    of 33 letters: linear, of chromosome 1, judged on chromosome 2."""
    X, heads = fasta("C_elegans_acc_100000.fasta.bz2")
    y = np.array([h.endswith("label=1") for h in heads])
    one = np.array(["chr_num=1," in h for h in heads])
    start = perf_counter()
    F = placed_and_regional(X, site=198, near=50, width=33)
    m = KernelSVC("linear", C=2.0, loss="squared_hinge").fit(F[one], y[one])
    found = average_precision_score(y[~one], m.decision_function(F[~one]))
    yield Measure("C. elegans, by chromosome: average precision", found, 0.915, 1.0, "", False)
    yield Measure("C. elegans, by chromosome: seconds", perf_counter() - start, 60.0, 1.0, "s")


def placed_and_regional(X, site, near, width):
    """Rows of two blocks, each of length 1."""
    words, placed = Spectrum(5, alphabet="dna").lift(), WeightedDegree(5, alphabet="dna").lift()
    starts = range(site % width, len(X[0]) - width + 1, width)
    at = placed.fit_transform([x[site - near : site + near] for x in X])
    regions = [words.fit_transform([x[a : a + width] for x in X]) for a in starts]
    blocks = [normalize(at.astype(np.float32)), normalize(sp.hstack(regions, "csr", np.float32))]
    return sp.hstack(blocks, "csr")


def cases():
    yield from spectra()
    yield from strkernels()
    yield from machines()
    yield from splice()
    yield from elegans()
