"""Dask collections at the door: recognised without dask, never computed, answered lazily."""

import subprocess
import sys

import numpy as np
import pytest

from mercer import (
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    LearnedMetric,
    NadarayaWatson,
)
from mercer.engines import is_dask
from mercer.kernels import Gaussian
from mercer.lifts import Monomials, NGrams, Nystrom, RandomFourier
from mercer.methods import Fourier

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
bag = pytest.importorskip("dask.bag")
delayed = pytest.importorskip("dask").delayed
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X[:, 0] + np.sin(X[:, 1])
MODEL = KernelRidge(Gaussian(2.0), via=Fourier(20), random_state=0).fit(X, Y)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


class Untouchable(da.Array):
    """Fails where anyone turns it into numbers."""

    __slots__ = ()

    def __array__(self, *args, **options):
        raise AssertionError("materialised")

    def compute(self, *args, **options):
        raise AssertionError("computed")


def untouchable(values, chunks):
    a = da.from_array(values, chunks=chunks)
    return Untouchable(a.dask, a.name, a.chunks, meta=a._meta)


def test_without_dask_there_is_nothing_to_recognise_and_nothing_is_imported():
    code = (
        "import sys; sys.modules['dask'] = None; import numpy as np\n"
        "from mercer import KernelRidge\nfrom mercer.engines import is_dask\n"
        "X = np.eye(4); KernelRidge().fit(X, X[:, 0]).predict(X); assert not is_dask(X)\n"
        "assert not any(m.startswith(('dask.', 'distributed')) for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fit_and_predict_materialise_nothing():
    lazy = untouchable(X, (40, 2)), untouchable(Y, 40)
    m = KernelRidge(Gaussian(2.0), via=Fourier(20), random_state=0).fit(*lazy)
    assert is_dask(m.predict(lazy[0]))
    np.testing.assert_allclose(m.coef_, MODEL.coef_, rtol=1e-9)


def test_answers_keep_the_chunks_and_tell_their_type():
    p = MODEL.predict(da.from_array(X.astype(np.float32), chunks=((1, 49, 40), (2, 1))))
    assert p.chunks == ((1, 49, 40),)
    assert p.dtype == np.float32
    assert isinstance(p._meta, np.ndarray)
    np.testing.assert_allclose(p.compute(), MODEL.predict(X.astype(np.float32)), rtol=1e-5)


def test_answers_of_features_have_two_axes_and_gradients_too():
    lazy = da.from_array(X, chunks=(50, 3))
    phi = RandomFourier(Gaussian(2.0), n_features=20, random_state=0).fit(lazy)
    F = phi.transform(lazy)
    assert F.chunks == ((50, 40), (20,))
    assert np.array_equal(F.compute(), phi.transform(X))
    G = MODEL.gradient(lazy)
    assert G.shape == (90, 3)
    np.testing.assert_allclose(G.compute(), MODEL.gradient(X))


def test_frames_bring_names_and_are_checked_by_them():
    frame = dd.from_pandas(FRAME, npartitions=4)
    m = KernelRidge(Gaussian(2.0), via=Fourier(20), random_state=0)
    m.fit(frame, dd.from_pandas(pd.Series(Y), npartitions=4))
    assert m.feature_names_in_.tolist() == ["a", "b", "c"]
    assert m.n_features_in_ == 3
    p = m.predict(frame)
    assert p.npartitions == 4
    np.testing.assert_allclose(p.compute(), m.predict(FRAME))
    with pytest.raises(ValueError, match="feature names"):
        m.predict(frame.rename(columns={"b": "z"}))


@pytest.mark.parametrize(
    "made",
    [
        RandomFourier(Gaussian(2.0), n_features=20, random_state=0),
        Nystrom(Gaussian(2.0), n_landmarks=20, random_state=0),
        KernelPCA(2, via=Fourier(20), random_state=0),
        LearnedMetric(random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_frames_are_given_where_set_output_asks_for_them(made):
    model = made.fit(FRAME, Y).set_output(transform="pandas")
    moved = FRAME.set_axis(np.arange(90)[::-1] * 2)
    for frame in (moved, moved[moved.a > 5]):
        lazy = model.transform(dd.from_pandas(frame, npartitions=3, sort=False))
        pd.testing.assert_frame_equal(lazy._meta, model.transform(moved).iloc[:0])
        if len(frame):
            pd.testing.assert_frame_equal(lazy.compute(), model.transform(frame))
    plain = made.fit(X, Y)
    found = plain.transform(da.from_array(X, chunks=(40, 2)))
    pd.testing.assert_frame_equal(found.compute(), plain.transform(X))


def test_frames_of_other_libraries_are_refused():
    pytest.importorskip("polars")
    phi = RandomFourier(Gaussian(2.0), n_features=20).fit(X).set_output(transform="polars")
    with pytest.raises(ValueError, match="set_output asks for polars"):
        phi.transform(da.from_array(X, chunks=(40, 3)))


def test_empty_partitions_are_answered():
    lazy = da.concatenate([da.empty((0, 3), chunks=(1, 3)), da.from_array(X, chunks=(60, 3))])
    assert MODEL.predict(lazy).compute().shape == (90,)
    frame = dd.from_pandas(FRAME, npartitions=3)
    some = frame[frame.a > 2.2]  # of few partitions
    m = KernelRidge(Gaussian(2.0), via=Fourier(20), random_state=0).fit(FRAME, Y)
    assert len(m.predict(some).compute()) == int((FRAME.a > 2.2).sum())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: KernelSVC().fit(da.ones((9, 2)), da.ones(9)), "loss='squared_hinge'"),
        (lambda: NadarayaWatson().fit(da.ones((9, 2)), da.ones(9)), "has no fit over partitions"),
        (lambda: KernelRidge().fit(X, da.from_array(Y)), "y is a dask collection, but X is none"),
        (lambda: KernelRidge("precomputed").fit(da.ones((9, 2)), da.ones(9)), "needs all rows in one place"),
        (lambda: KernelRidge(cv="loo").fit(da.ones((9, 2)), da.ones(9)), "give cv as a number of folds"),
        (lambda: KernelRidge().fit(da.ones(9), da.ones(9)), "a dask array of rows and columns"),
        (lambda: KernelRidge().fit(da.ones((9, 0)), da.ones(9)), "at least one column"),
        (lambda: KernelRidge().fit(da.ones((0, 2)), da.ones(0)), "X has 0 rows"),
        (lambda: KernelRidge().fit(da.ones((9, 2)), da.ones(8)), "X has 9 rows and y 8"),
        (lambda: KernelRidge().fit(da.ones((9, 2), dtype="M8[s]"), da.ones(9)), "must hold numbers"),
        (lambda: KernelRidge().fit(da.ones((9, 2)), da.ones(9), da.zeros(9)), "zero for every row"),
        (lambda: KernelRidge(alpha=-1).fit(da.ones((9, 2)), da.ones(9)), "alpha must be"),
        (lambda: KernelRidge().partial_fit(da.ones((9, 2)), da.ones(9)), "takes none in partial_fit"),
        (lambda: MODEL.predict(da.ones((9, 2))), "2 features"),
        (lambda: KernelRidge().fit(delayed(X), da.ones(9)), "X is a delayed value"),
        (lambda: KernelRidge().fit(da.ones((9, 2)), delayed(Y)), "y is a delayed value"),
        (lambda: MODEL.predict(delayed(X)), "X is a delayed value"),
        (lambda: KernelRidge().fit(bag.from_sequence([1, 2]), da.ones(2)), "a dask array of rows and columns"),
        (lambda: NGrams().fit(bag.from_sequence([1, 2])), "X must hold texts, got int"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_in_a_sentence(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    m = KernelRidge(via=Fourier(20), random_state=0).fit(X, Y)
    before = dict(vars(m))
    bad = da.from_array(np.vstack([X, [[np.nan] * 3]])[:, :2], chunks=(50, 2))
    with pytest.raises(ValueError, match=r"partition 1 of 2 \(rows 50 to 90\): X contains NaN"):
        m.fit(bad, da.from_array(np.append(Y, 0.0), chunks=50))
    assert vars(m) == before


def test_types_and_columns_that_differ_between_partitions_are_named():
    parts = [np.ones((5, 2)), np.ones((5, 2), np.float32)]
    lazy = da.concatenate([da.from_array(parts[0], chunks=(5, 2))] * 2)
    mixed = lazy.map_blocks(
        lambda b, block_info=None: parts[block_info[0]["chunk-location"][0]], dtype=float
    )
    with pytest.raises(ValueError, match=r"partition 1 of 2 .*: X holds float32 here and float64"):
        KernelRidge(via="features").fit(mixed, da.ones(10, chunks=5))
    meta = FRAME.iloc[:0]
    frame = dd.from_map(lambda i: FRAME if i else FRAME[["a", "c"]], [0, 1], meta=meta)
    y = dd.from_map(lambda i: FRAME.a, [0, 1], meta=FRAME.a.iloc[:0])
    with pytest.raises(ValueError, match=r"partition 0 of 2 \(rows 0 to 89\): X has no column 'b'"):
        KernelRidge(via="features").fit(frame, y)


def test_lifts_that_learn_from_rows_take_a_sample_that_no_partitioning_changes():
    found = [
        Nystrom(Gaussian(2.0), n_landmarks=7, random_state=0).fit(da.from_array(X, chunks=c))
        for c in [(90, 3), (7, 2)]
    ]
    own = Nystrom(Gaussian(2.0), n_landmarks=7, random_state=0).fit(X)
    assert all(np.array_equal(phi.transform(X), own.transform(X)) for phi in found)
    names = Monomials(2).fit(dd.from_pandas(FRAME, npartitions=3)).get_feature_names_out()
    assert list(names) == list(Monomials(2).fit(FRAME).get_feature_names_out())


def test_document_frequencies_add_over_partitions():
    texts = [
        f"the {a} and {b}" for a in ("red", "blue", "old") for b in ("cat", "dog", "sun", "sea")
    ]
    own = NGrams(weight="tfidf", n_features=64).fit(texts)
    for count in (1, 3, 5):
        lazy = dd.from_pandas(pd.Series(texts), npartitions=count)
        grams = NGrams(weight="tfidf", n_features=64).fit(lazy)
        rows = grams.transform(lazy).compute()
        assert abs(rows - own.transform(texts)).max() == 0
        named = NGrams(weight="tfidf", vocabulary="learn").fit(lazy)
        assert np.array_equal(
            named.idf_, NGrams(weight="tfidf", vocabulary="learn").fit(texts).idf_
        )


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of dask's reader, from pandas 3.1 on
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_partition_that_fails_is_named_with_its_file(suffix, tmp_path):
    for i in range(3):
        part = FRAME.assign(a=FRAME.a if i != 1 else np.nan)
        getattr(part, f"to_{suffix}")(tmp_path / f"part-{i}.{suffix}", index=False)
    frame = getattr(dd, f"read_{suffix}")(str(tmp_path / f"*.{suffix}"))
    whole = frame[["b", "c"]]
    m = KernelRidge(via="features", random_state=0).fit(whole, frame.c)
    assert len(m.predict(whole).compute()) == 270
    told = rf"^partition 1 of 3 \(part-1.{suffix}, rows 90 to 179\): X contains NaN"
    with pytest.raises(ValueError, match=told):
        KernelRidge(via="features").fit(frame[["a", "b"]], frame.c)


def fails(part, number):
    if number == 2:
        raise KeyError("no such row")
    return part.drop(columns="b") if number == 3 else part


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([0, 2, 1], r"^partition 1 of 3 could not be read: KeyError: 'no such row'$"),
        ([0, 1, 3], r"^partition 2 of 3: The columns in the computed data .* Missing: \['b'\]$"),
    ],
)
def test_a_partition_that_fails_as_rows_are_counted_is_named(numbers, told):
    whole = dd.from_map(lambda i: FRAME, numbers, meta=FRAME.iloc[:0])
    lazy = whole.map_partitions(
        lambda part, partition_info=None: (
            part if partition_info is None else fails(part, numbers[partition_info["number"]])
        ),
        meta=FRAME.iloc[:0],
    )
    with pytest.raises(ValueError, match=told):
        KernelRidge(via="features").fit(lazy[["a", "b"]], lazy.c)


def test_bags_are_columns_of_texts():
    texts = [f"{a} {b} {c}" for a in "pq" for b in "rstu" for c in "vwxyz"]
    lazy = bag.from_sequence([t.upper() for t in texts], npartitions=3).map(str.lower)
    own = NGrams(weight="tfidf", n_features=64).fit(texts)
    grams = NGrams(weight="tfidf", n_features=64).fit(lazy)
    assert abs(grams.transform(lazy).compute() - own.transform(texts)).max() == 0
    y = np.arange(len(texts)) % 7.0
    m = KernelRidge(lift=NGrams(n_features=64))
    lengths = tuple(lazy.map_partitions(lambda part: [len(list(part))]).compute())
    m.fit(lazy, da.from_array(y, chunks=(lengths,)))
    there = KernelRidge(lift=NGrams(n_features=64)).fit(texts, y).predict(texts)
    np.testing.assert_allclose(m.predict(lazy).compute(), there, rtol=1e-7)


def test_one_answer_a_row_of_a_frame_is_a_series_with_its_index():
    frame = FRAME.set_axis(np.arange(len(FRAME)) * 10 + 5, axis=0)
    lazy = dd.from_pandas(frame, npartitions=4)
    m = KernelRidge().fit(FRAME, Y)
    p = m.predict(lazy)
    assert is_dask(p)
    assert p.divisions == lazy.divisions
    found = p.compute()
    assert found.index.equals(frame.index)
    np.testing.assert_allclose(found, m.predict(FRAME), rtol=1e-12)
    some = lazy[lazy.a > lazy.a.mean()]  # partitions of unknown lengths, one perhaps empty
    assert m.predict(some).compute().index.equals(some.compute().index)
    both = lazy.assign(p=p).compute()  # as users join answers to their rows
    np.testing.assert_allclose(both.p, m.predict(FRAME), rtol=1e-12)
    c = KernelLogistic().fit(FRAME, np.where(Y.mean() < Y, "high", "low"))
    classes = c.predict(lazy).compute()
    assert classes.index.equals(frame.index)
    assert classes.tolist() == c.predict(FRAME).tolist()
    assert not hasattr(c.predict_proba(lazy), "divisions")  # several numbers a row are an array
    assert c.decision_function(lazy).divisions == lazy.divisions
    assert m.score(lazy, dd.from_pandas(frame.assign(y=Y), npartitions=4).y) == pytest.approx(
        m.score(FRAME, Y)
    )
