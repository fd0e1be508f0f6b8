"""The twins that Mercer is held to: each estimator of scikit-learn that has a peer, and the
settings that mean the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn import cluster, decomposition, gaussian_process, kernel_ridge, linear_model, svm
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from mercer import models
from mercer.inputs import Array
from mercer.kernels import Gaussian, Linear
from mercer.lifts import (
    GaussianProjection,
    HashedFeatures,
    Identity,
    Monomials,
    NGrams,
    Nystrom,
    RandomFourier,
    SparseProjection,
    Splines,
    TensorSketch,
)
from mercer.testing.twins import Twin

__all__ = ["twins"]

GAMMA = 0.5  # exp(-gamma |x - z|^2) is Gaussian(1 / sqrt(2 gamma)), here Gaussian(1.0)
LIBSVM = {
    "fit_status_": "a fit that did not converge warns",
    "shape_fit_": "n_features_in_ says it",
}
LINEAR = dict.fromkeys(
    ("densify", "sparsify"), "coefficients are dense, and fitted values are not changed"
)
POSTERIOR = "posterior_ holds what answers need"
NUMBERS = "clusters have other numbers"
SEED = "the map is its seed"
STEPS = "another algorithm takes other steps"


def rows(n: int = 60, d: int = 3, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d))


def twins() -> dict[str, Twin]:
    """All of them by the name of scikit-learn's estimator.

    Examples
    --------
    >>> from mercer.testing.twins import check_twin
    >>> check_twin(twins()["PolynomialFeatures"])
    """
    return regressors() | classifiers() | unsupervised() | maps() | random_maps() | texts()


def regressors() -> dict[str, Twin]:
    X, Z = rows(), rows(20, seed=1)
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    twin = partial(Twin, X=X, y=y, Z=Z)
    return {
        "KernelRidge": twin(
            kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf", gamma=GAMMA),
            models.KernelRidge(Gaussian(1.0), 0.1, "exact", fit_intercept=False),
        ),
        "SVR": twin(
            svm.SVR(gamma=GAMMA, tol=1e-10),
            models.KernelSVR(Gaussian(1.0), tol=1e-10),
            tol=1e-5,
            without=LIBSVM,
            differs={"n_iter_": STEPS},
        ),
        "GaussianProcessRegressor": twin(
            gaussian_process.GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None),
            models.GaussianProcessRegressor(Gaussian(1.0), 0.1, prior_mean=0.0, fixed=True),
            renamed={"log_marginal_likelihood_value_": "log_marginal_likelihood_"},
            without=dict.fromkeys(("L_", "X_train_", "alpha_", "y_train_"), POSTERIOR),
        ),
        "Lasso": twin(
            linear_model.Lasso(0.01, tol=1e-12),
            models.SparseRegressor(Identity(), 0.01, scale=None, refit=False, tol=1e-12),
            without={
                "dual_gap_": "the path ends within tol",
                "n_iter_": STEPS,
                "path": "fit learns all penalties with alpha='cv'",
                "sparse_coef_": "terms and names_ are those that are not 0",
            },
        ),
    }


def classifiers() -> dict[str, Twin]:
    X, Z = rows(80), rows(20, seed=1)
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rows(80, 1, 2)[:, 0] > 0.2, "yes", "no")
    twin = partial(Twin, X=X, y=y, Z=Z)
    return {
        "SVC": twin(
            svm.SVC(gamma=GAMMA, tol=1e-10),
            models.KernelSVC(Gaussian(1.0), via="exact", tol=1e-10),
            without=LIBSVM
            | {
                "class_weight_": "weights are in the rows' own",
                "probA_": "probability=True calibrates by folds",
                "probB_": "probability=True calibrates by folds",
            },
            differs={"n_iter_": STEPS},
        ),
        "GaussianProcessClassifier": twin(
            gaussian_process.GaussianProcessClassifier(RBF(1.0), optimizer=None),
            models.GaussianProcessClassifier(Gaussian(1.0), fixed=True),
            renamed={"log_marginal_likelihood_value_": "log_marginal_likelihood_"},
            without={
                "base_estimator_": POSTERIOR,
                "log_marginal_likelihood": "log_marginal_likelihood_ is that of the fit",
                "n_classes_": "len(classes_)",
            },
            tol=5e-3,
        ),
        "LogisticRegression": twin(
            linear_model.LogisticRegression(tol=1e-10, max_iter=1000),
            models.KernelLogistic(Linear(), tol=1e-10),
            without=LINEAR,
            differs={"n_iter_": STEPS},
            tol=1e-5,
        ),
        "Perceptron": twin(
            linear_model.Perceptron(shuffle=False, tol=None, max_iter=5),
            models.Perceptron(lift=Identity(), max_iter=5, shuffle=False),
            without=LINEAR | {"t_": "n_iter_ counts the passes"},
            differs={"sample_weight": "mistakes are of rows", "n_iter_": STEPS},
            tol=None,
        ),
    }


def unsupervised() -> dict[str, Twin]:
    X, Z = np.concatenate([rows(25, seed=s) + 4 * s for s in range(3)]), rows(20, seed=1)
    twin = partial(Twin, X=X, y=None, Z=Z)
    return {
        "OneClassSVM": twin(
            svm.OneClassSVM(gamma=GAMMA, tol=1e-10),
            models.OneClassSVM(Gaussian(1.0), tol=1e-10),
            without=LIBSVM,
            differs={"n_iter_": STEPS},
        ),
        "KernelPCA": twin(
            decomposition.KernelPCA(2, kernel="rbf", gamma=GAMMA, fit_inverse_transform=True),
            models.KernelPCA(2, Gaussian(1.0), "exact"),
            without={
                "X_transformed_fit_": "ways back are found by the kernel",
                "eigenvectors_": "dual_coef_ is that over the roots of eigenvalues_",
                "gamma_": "kernel_ holds its bandwidth",
            },
            differs=dict.fromkeys(
                ("inverse_transform", "dual_coef_"),
                "a fixed point, where theirs is a ridge regression of coefficients dual_coef_",
            ),
        ),
        "KMeans": twin(
            cluster.KMeans(3, n_init=5, random_state=0),
            models.KernelKMeans(3, lift=Identity(), n_init=5, random_state=0),
            renamed={"transform": "distances"},
            without={"fit_transform": "distances are asked for after fit"},
            differs=dict.fromkeys(("predict", "labels_", "cluster_centers_", "transform"), NUMBERS)
            | {"n_iter_": STEPS},
        ),
    }


def maps() -> dict[str, Twin]:
    twin = partial(Twin, X=rows(), y=None, Z=rows(20, seed=1))
    return {
        "PolynomialFeatures": twin(
            PolynomialFeatures((2, 3)),
            Monomials((2, 3)),
            renamed={"n_output_features_": "n_features_out_"},
        ),
        "SplineTransformer": twin(
            SplineTransformer(),
            Splines(),
            without={"bsplines_": "splines_ is the transformer that has them"},
            differs={"sample_weight": "knots are quantiles of rows; give knots"},
        ),
    }


def random_maps() -> dict[str, Twin]:
    twin = partial(Twin, X=rows(), y=None, Z=rows(20, seed=1), tol=None)
    return {
        "RBFSampler": twin(
            RBFSampler(gamma=GAMMA, n_components=16),
            RandomFourier(Gaussian(1.0), 16, random_state=0),
            without={"random_offset_": SEED, "random_weights_": SEED},
        ),
        "Nystroem": twin(
            Nystroem(gamma=GAMMA, n_components=10),
            Nystrom(Gaussian(1.0), 10, random_state=0),
            renamed={
                "components_": "landmarks_",
                "component_indices_": "landmark_indices_",
                "normalization_": "components_",
            },
        ),
        "PolynomialCountSketch": twin(
            PolynomialCountSketch(degree=2, n_components=16),
            TensorSketch(2, 16, bias=0.0, random_state=0),
            without={"bitHash_": "in sketches_", "indexHash_": "in sketches_"},
        ),
        "GaussianRandomProjection": twin(
            GaussianRandomProjection(2),
            GaussianProjection(2, random_state=0),
            renamed={"n_components_": "n_features_out_"},
        ),
        "SparseRandomProjection": twin(
            SparseRandomProjection(2),
            SparseProjection(2, random_state=0),
            renamed={"n_components_": "n_features_out_"},
            without={"density_": "projection_.s entries a column"},
        ),
    }


def texts() -> dict[str, Twin]:
    words = ["to be or not to be", "that is the question", "be brief", "not that"]
    items: list[Any] = [{"a": 1.0, "b": 2.0}, {"city": "Oslo"}, {"a": 3.0}]
    return {
        "HashingVectorizer": Twin(
            HashingVectorizer(n_features=64, ngram_range=(1, 2)),
            NGrams((1, 2), n_features=64),
            words,
            None,
            words,
            without=dict.fromkeys(
                ("build_analyzer", "build_preprocessor", "build_tokenizer", "decode"),
                "n-grams are cut in compiled loops",
            ),
        ),
        "FeatureHasher": Twin(FeatureHasher(64), HashedFeatures(64), items, None, items),
    }
