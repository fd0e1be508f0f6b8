"""Text and hashing against scikit-learn: the same documents, the same columns, checked entry by entry.

Vectorisers: reviews, whole and cut into documents of drawn lengths (MERCER_BENCH_SEED), so that a
lead at one shape shows as such; the worst ratio counts. Learners: settings are chosen on training
documents alone, test documents are read once at the end. Seconds of ours and the peer's are those of
the whole way, from text to fitted model.
"""

import json
import lzma
import os
import subprocess
import sys
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold
from sklearn.svm import LinearSVC

from bench import data
from bench.harness import Case, Measure, Quality
from mercer import KernelSVC, NGrams
from mercer.lifts import HashedFeatures

SEED = int(os.environ.get("MERCER_BENCH_SEED", "0"))
PENALTIES = (0.3, 1.0, 3.0)


@cache
def reviews(part):
    """(texts, labels) of a half of IMDB."""
    with lzma.open(data.path(f"text/aclimdb-{part}.jsonl.xz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    names = sorted(rows[0], key=lambda name: len(str(rows[0][name])))
    return [r[names[-1]] for r in rows], np.array([r[names[0]] for r in rows])


@cache
def messages():
    with lzma.open(data.path("text/SMSSpamCollection.tsv.xz"), "rt", encoding="utf-8") as lines:
        next(lines)
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    return [text for _, text in pairs], np.array([label == "spam" for label, _ in pairs])


def cut(texts, characters, rng):
    """The texts in documents of about so many characters."""
    whole = "\n".join(texts)
    at = np.cumsum(rng.geometric(1 / characters, size=2 * len(whole) // characters))
    at = [0, *at[at < len(whole)].tolist(), len(whole)]
    return [whole[a:b] for a, b in pairwise(at)]


def same(tolerance=0.0):
    """Equal matrices, but for explicit zeros of the peer."""

    def check(ours, peer):
        peer = sp.csr_matrix(peer)
        peer.eliminate_zeros()
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape} differ"
        gap = abs(ours - peer)
        return None if (gap.max() if gap.nnz else 0.0) <= tolerance else "entries differ"

    return check


def vectorisers():
    rng, whole = np.random.default_rng(SEED), reviews("train")[0]
    shapes = {"reviews": whole}
    for characters in np.exp(rng.uniform(np.log(40), np.log(5000), size=2)).astype(int):
        shapes[f"documents of about {characters} characters"] = cut(whole[::8], characters, rng)
    for name, texts in shapes.items():
        few = texts[:: 8 if name == "reviews" else 4]
        yield Case(
            f"words 1-2, hashed, {name}",
            lambda texts=texts: NGrams(words=(1, 2)).transform(texts),
            lambda texts=texts: HashingVectorizer(ngram_range=(1, 2)).transform(texts),
            same(1e-12),
            target=20.0,
            repeats=3,
        )
        yield Case(
            f"chars 3-5, hashed, {name}",
            lambda few=few: NGrams(chars=(3, 5)).transform(few),
            lambda few=few: HashingVectorizer(analyzer="char", ngram_range=(3, 5)).transform(few),
            same(1e-12),
            target=30.0,
            repeats=2,
        )
        yield Case(
            f"words 1-2, vocabulary learnt, {name}",
            lambda texts=texts: NGrams(words=(1, 2), vocabulary="learn", norm=None).fit_transform(
                texts
            ),
            lambda texts=texts: CountVectorizer(ngram_range=(1, 2)).fit_transform(texts),
            same(),
            target=15.0,
            repeats=2,
        )


def hashers():
    frame = data.table("adult.tsv.gz").drop(columns="target")
    names = [
        n
        for n in frame.columns
        if n
        in (
            "workclass",
            "education",
            "marital-status",
            "occupation",
            "relationship",
            "race",
            "sex",
            "native-country",
        )
    ]
    levels = frame[names].astype(str)
    rows = levels.to_dict("records")
    yield Case(
        f"{len(names)} categorical columns, adult",
        lambda: HashedFeatures(2**20).fit_transform(levels),
        lambda: FeatureHasher(2**20).transform(rows),
        same(),
        target=10.0,
    )
    yield Case(
        "dicts, adult",
        lambda: HashedFeatures(2**20).fit_transform(rows),
        lambda: FeatureHasher(2**20).transform(rows),
        same(),
        target=1.0,
    )


def sentiment():
    """IMDB: C chosen by folds of the training reviews, the test ones read once."""
    (texts, y), (new, truth) = reviews("train"), reviews("test")
    start = perf_counter()
    phi = NGrams(words=(1, 3), weight="ratio", n_features=2**22)
    F = phi.fit_transform(texts, y)
    m = KernelSVC("linear", cv=3, Cs=PENALTIES).fit(F, y)
    ours = perf_counter() - start
    score = m.score(phi.transform(new), truth)
    start = perf_counter()
    tfidf = TfidfVectorizer(ngram_range=(1, 3))
    peer = LinearSVC().fit(tfidf.fit_transform(texts), y)
    theirs = perf_counter() - start
    beside = peer.score(tfidf.transform(new), truth)
    quality = Quality("accuracy", score, beside, slack=-0.003)
    yield Measure(
        "IMDB, from text to a model, its C chosen", ours, theirs, 2.2, "s", quality=quality
    )
    yield Measure("IMDB, test accuracy", score, 0.912, lower_is_better=False)


def spam():
    """SMS: five folds, equal messages in one of them."""
    texts, y = messages()
    groups = np.unique(texts, return_inverse=True)[1]
    scores = {"ours": np.zeros(len(y)), "peer": np.zeros(len(y))}
    for train, test in GroupKFold(5).split(texts, y, groups):
        some, others = [texts[i] for i in train], [texts[i] for i in test]
        phi = NGrams(words=(1, 2), chars=(1, 5), weight="tfidf", vocabulary="learn")
        m = KernelSVC("linear", loss="squared_hinge").fit(phi.fit_transform(some), y[train])
        scores["ours"][test] = m.decision_function(phi.transform(others))
        maps = [
            TfidfVectorizer(ngram_range=(1, 2)),
            TfidfVectorizer(analyzer="char", ngram_range=(1, 5)),
        ]
        F = sp.hstack([v.fit_transform(some) for v in maps]).tocsr()
        peer = LinearSVC().fit(F, y[train])
        scores["peer"][test] = peer.decision_function(
            sp.hstack([v.transform(others) for v in maps]).tocsr()
        )
    for name, of in {
        "accuracy": lambda s: np.mean((s > 0) == y),
        "average precision": lambda s: average_precision_score(y, s),
    }.items():
        yield Measure(
            f"SMS, five folds, {name}",
            float(of(scores["ours"])),
            float(of(scores["peer"])),
            lower_is_better=False,
        )


def command(seconds=60):
    """`mercer fit` on the file of reviews, judged on the file of others by what it emits."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("train", "test"):
            file = Path(folder) / f"{part}.jsonl"
            with lzma.open(data.path(f"text/aclimdb-{part}.jsonl.xz")) as packed:
                file.write_bytes(packed.read())
        label = min(
            json.loads(file.read_text("utf-8").split("\n", 1)[0]).items(),
            key=lambda kv: len(str(kv[1])),
        )[0]
        args = [sys.executable, "-m", "mercer", "fit", f"{folder}/train.jsonl", "--target", label]
        args += [
            "--test",
            f"{folder}/test.jsonl",
            "--time",
            str(seconds),
            "--out",
            f"{folder}/m",
            "--json",
        ]
        told = json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)
    chosen = next(c for c in told["contenders"] if c["chosen"])
    yield Measure(
        f"mercer fit, reviews, --time {seconds}: test accuracy",
        chosen["holdout"],
        0.910,
        lower_is_better=False,
    )


def first_use():
    """A process that hashes a handful of texts, with nothing compiled before and with all."""
    code = "from mercer import NGrams; NGrams().transform(['a text of words'] * 10)"
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "NUMBA_CACHE_DIR": folder}
        times = []
        for _ in range(3):
            start = perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=env)
            times.append(perf_counter() - start)
    yield Measure("first use, nothing compiled before", times[0], 3.0, unit="s")
    yield Measure("first use in a process, compiled before", min(times[1:]), 1.0, unit="s")


def cases():
    yield from first_use()
    yield from vectorisers()
    yield from hashers()
    yield from spam()
    yield from sentiment()
    yield from command()
