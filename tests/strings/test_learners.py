"""Every learner that takes a kernel takes strings; frames of strings and numbers; models in files."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mercer import (
    GaussianProcessClassifier,
    KernelKMeans,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    NadarayaWatson,
    OneClassSVM,
    RKHSFunction,
    hsic_test,
)
from mercer.kernels import Gaussian, exp
from mercer.lifts import Nystrom
from mercer.store import load
from mercer.strings import Gapped, Mismatch, Spectrum, Subsequence, WeightedDegree
from mercer.testing import check_kernel
from tests.strings.words import strings

X = strings(0, 60, "ACGT", 18)
Y = np.array([x.count("CG") - x.count("A") / 4 for x in X])
C = np.median(Y) < Y
FRAME = pd.DataFrame({"seq": X, "a": Y, "b": np.sin(np.arange(60.0))})
BOTH = Spectrum(2).normalized().on_columns("seq") * Gaussian(2.0).on_columns(["a", "b"]) + 1
EVEN = [x[:4].ljust(4, "C") for x in X[:12]]


@pytest.mark.parametrize("k", [
    Spectrum(2), Mismatch(3, 1), Gapped(3, 1), Subsequence(2, 0.5), WeightedDegree(2, shift=1),
    exp(0.1 * Spectrum(2).normalized()) ** 2, Subsequence(2, 0.4, alphabet="dna").normalized() * Spectrum(1),
], ids=repr)  # fmt: skip
def test_the_contract_of_kernels(k):
    check_kernel(k, EVEN)
    assert k.proof()


@pytest.mark.parametrize("model", [
    KernelSVC(Spectrum(2)), KernelSVR(Gapped(3, 1).normalized()), KernelRidge(Mismatch(3, 1), via="landmarks"),
    GaussianProcessClassifier(Spectrum(2).normalized()), KernelPerceptron(Spectrum(2)),
    NadarayaWatson(exp(30 * Spectrum(2).normalized())), make_pipeline(Nystrom(Mismatch(3, 1), 20), KernelSVC("linear")),
    make_pipeline(Spectrum(2).lift(), KernelSVC("linear")), make_pipeline(KernelPCA(9, Spectrum(2)), KernelSVC()),
])  # fmt: skip
def test_learners_learn(model):
    numbers = isinstance(model, KernelSVR | KernelRidge | NadarayaWatson)
    assert model.fit(X, Y if numbers else C).score(X, Y if numbers else C) > 0.5
    new = model.predict(["ACGTTT", "", "NNNN", "acgt"])
    assert len(new) == 4


def test_other_learners_take_strings():
    assert set(OneClassSVM(Spectrum(2).normalized()).fit(X).predict(X)) <= {-1, 1}
    assert (
        len(KernelKMeans(2, kernel=Spectrum(2).normalized(), random_state=0).fit(X).labels_) == 60
    )
    assert hsic_test(X, Y[:, None], kernel=Spectrum(2), random_state=0).pvalue < 0.05
    f = RKHSFunction(Mismatch(3, 1), X[:3], [1.0, 2.0, 3.0])
    assert f.kernel.alphabet is not None
    stream = KernelRidge(Spectrum(2), via="landmarks").partial_fit(X[:30], Y[:30])
    assert stream.partial_fit(X[30:], Y[30:]).score(X, Y) > 0.9


def test_a_search_over_the_letters_of_a_word():
    grid = GridSearchCV(KernelSVC(Spectrum(1)), {"kernel__k": [1, 2, 3]}, cv=3).fit(X, C)
    assert grid.best_params_["kernel__k"] in (1, 2, 3)
    assert grid.best_estimator_.kernel_.alphabet == "ACGT"


def test_precomputed_is_the_same_machine():
    k = Spectrum(2, alphabet="dna")
    given = KernelSVC("precomputed").fit(k(X), C)
    assert np.allclose(
        given.decision_function(k(EVEN, X)), KernelSVC(k).fit(X, C).decision_function(EVEN)
    )


@pytest.mark.parametrize(
    "of", [lambda D: D, lambda D: pa.Table.from_pandas(D), lambda D: D[["b", "seq", "a"]]]
)
def test_strings_and_numbers_of_one_frame(of):
    K = Spectrum(2).normalized()(X) * Gaussian(2.0)(FRAME[["a", "b"]].to_numpy()) + 1
    assert np.allclose(BOTH(of(FRAME)), K)
    assert np.allclose(BOTH(of(FRAME)[:9], FRAME), K[:9])
    m = KernelRidge(BOTH).fit(FRAME, Y)
    assert m.kernel_.terms[0].terms[0].kernel.kernel.alphabet == "ACGT"
    assert np.allclose(m.predict(of(FRAME)), m.predict(FRAME))


def test_frames_that_do_not_serve_are_a_sentence():
    with pytest.raises(ValueError, match="column 'seq' is not in X; X has other"):
        BOTH(pd.DataFrame({"other": X}))
    with pytest.raises(ValueError, match="items without columns"):
        BOTH(X)
    with pytest.raises(ValueError, match="row 1 is None"):
        Spectrum(2).on_columns("s")(
            pd.DataFrame({"s": pd.Series(["a", None], dtype=object), "t": [1, 2]})
        )


@pytest.mark.parametrize(
    "model", [KernelRidge(BOTH), KernelSVC(Gapped(3, 1, strands="both").normalized())]
)
def test_models_are_kept_in_files(model, tmp_path):
    rows = FRAME if model.kernel is BOTH else X
    m = model.fit(rows, C)
    m.save(tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer")
    assert again.kernel_ == m.kernel_
    assert np.array_equal(again.predict(rows), m.predict(rows))


@pytest.mark.parametrize(
    "change", [dict(k=0), dict(alphabet="AA"), dict(unknown="no"), dict(k="x")]
)
def test_a_kernel_that_cannot_be_is_refused_when_loaded(change):
    from mercer.store import decode, encode

    k = Spectrum(2, alphabet="ACGT")
    for name, value in change.items():
        object.__setattr__(k, name, value)
    with pytest.raises(ValueError, match=r".+"):
        decode(*encode(k))
