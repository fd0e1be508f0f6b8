"""Data of benchmarks: as they are on disk, or one sentence."""

import numpy as np
import pytest

from bench import data


def test_missing_data_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "absent"))
    with pytest.raises(data.DataMissing, match="set MERCER_DATA"):
        data.path("libsvm/a9a.xz")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(data.DataMissing, match=r"has no libsvm/a9a\.xz"):
        data.libsvm("a9a.xz")


@pytest.mark.parametrize(("suffix", "module"), [(".xz", "lzma"), (".bz2", "bz2")])
def test_libsvm_is_float32_with_int32_indices(suffix, module, tmp_path, monkeypatch):
    compress = pytest.importorskip(module).compress
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / f"toy{suffix}").write_bytes(compress(b"1 1:0.5 3:2\n-1 2:1\n"))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    X, y = data.libsvm(f"toy{suffix}", n_features=4)
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert np.array_equal(X.toarray(), [[0.5, 0, 2, 0], [0, 1, 0, 0]])
    assert np.array_equal(data.libsvm(f"toy{suffix}", n_features=4, dense=True)[0], X.toarray())
    assert list(y) == [1, -1]


def test_uci_cv_splits_by_the_mask(tmp_path, monkeypatch):
    folder = tmp_path / "uci_cv" / "toy"
    folder.mkdir(parents=True)
    np.savetxt(folder / "data.csv.gz", np.arange(12).reshape(4, 3), delimiter=",")
    np.savetxt(folder / "test_mask.csv.gz", [[0, 1], [1, 0], [0, 0], [0, 0]], delimiter=",")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    split = data.uci_cv("toy", split=1)
    assert np.array_equal(split.X_test, [[0, 1]])
    assert np.array_equal(split.y, [5, 8, 11])


def test_standardized_uses_the_training_rows_only():
    split = data.Split(
        np.array([[0.0, 7], [2, 7]]), np.array([1.0, 3]), np.array([[5.0, 8]]), np.array([4.0])
    )
    scaled = split.standardized(target=True)
    assert np.array_equal(scaled.X, [[-1, 0], [1, 0]])
    assert np.array_equal(scaled.X_test, [[4, 1]])
    assert np.array_equal(scaled.y_test, [2])
    assert np.array_equal(split.standardized().y, split.y)
