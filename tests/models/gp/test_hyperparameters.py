"""What users say of hyper-parameters is what they get, in the units of y: fixed, tied, bounded,
with priors."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Linear, Matern
from mercer.methods import Fourier, Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.priors import LogNormal
from mercer.store import load, save

# bounds are there to be met
pytestmark = pytest.mark.filterwarnings("ignore:the likelihood grows beyond the bounds")


def data(n=60, seed=0, size=10.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, size * (np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n))


def inner(m):
    return m.kernel_.get_params()


WAYS = {"exact": "exact", "iterative": "iterative", "all": "landmarks", "few": Landmarks(20)}


@pytest.fixture(params=WAYS)
def via(request):
    return WAYS[request.param]


# every way
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(dict(noise=0.1), marks=pytest.mark.long),
        dict(kernel=2.0 * Gaussian(5.0), via=Landmarks(30), fixed=True),
        pytest.param(
            dict(
                kernel=Gaussian(0.7), noise=0.1, via=Landmarks(30), bounds={"bandwidth": (0.1, 2.0)}
            ),
            marks=pytest.mark.long,
        ),
    ],
    ids=["noise", "fixed", "bounds"],
)
def test_scikit_learn_contract(options):
    check_estimator(GP(n_restarts=0, **options), on_skip=None)


def test_noise_and_scale_are_what_was_said(via):
    X, y = data()
    make = lambda k, **options: GP(k, via=via, n_restarts=0, random_state=0, **options).fit(X, y)
    assert 5 - 1e-6 <= make(Gaussian(0.7), bounds={"noise": (5.0, 6.0)}).noise_ <= 6 + 1e-6
    assert 3 - 1e-6 <= make(Gaussian(0.7), bounds={"scale": (3.0, 4.0)}).scale_ <= 4 + 1e-6
    assert make(Gaussian(0.7), priors={"noise": LogNormal(7.0, 1e-3)}).noise_ == pytest.approx(
        7.0, rel=1e-3
    )
    assert make(Gaussian(0.7), fixed=("scale",)).scale_ == pytest.approx(1.0)
    assert (
        0.2 - 1e-9
        <= make(1.0 * Gaussian(0.7), bounds={"factor": (0.2, 0.3)}).kernel_.factor
        <= 0.3 + 1e-9
    )


def test_all_as_given(via):
    """But the noise, which is that of the largest evidence."""
    X, y = data()
    k = 2.0 * Gaussian(0.7)
    m = GP(k, via=via, fixed=True, random_state=0).fit(X, y)
    assert m.kernel_ == k
    assert m.scale_ == pytest.approx(1.0)
    for by in (0.9, 1.1):
        other = GP(k, by * m.noise_, "exact", prior_mean="y").fit(X, y)
        assert (
            other.log_marginal_likelihood_
            < GP(k, m.noise_, "exact", prior_mean="y").fit(X, y).log_marginal_likelihood_
        )


@pytest.mark.parametrize("size", [1e-3, 10.0, 1e6])
def test_a_given_noise_learns_what_is_free(via, size):
    X, y = data(size=size)
    noise = 0.09 * size**2
    for k, options in (
        (Gaussian(5.0), {"fixed": ()}),
        (None, {}),
        (Gaussian(5.0), {"bounds": {"bandwidth": (0.5, 3.0)}}),
    ):
        m = GP(k, noise, via, n_restarts=0, random_state=0, **options).fit(X, y)
        assert m.noise_ == noise
        assert 0.5 < m.scale_ / size**2 < 50
        assert m.score(X, y) > 0.85
        assert "bounds" not in options or 0.5 <= m.kernel_.kernel.bandwidth <= 3.0


def test_a_given_noise_keeps_what_is_given(via):
    X, y = data()
    for options in ({}, {"fixed": "all"}, {"fixed": True}, {"fixed": ("bandwidth", "scale")}):
        assert GP(Gaussian(0.7), 9.0, via, random_state=0, **options).fit(X, y).kernel_ == Gaussian(
            0.7
        )


@pytest.mark.parametrize(
    "options",
    [
        dict(fixed=("typo",)),
        dict(bounds={"typo": (1, 2)}),
        dict(noise=0.1, fixed=("typo",)),
        dict(noise=0.1, fixed="all", bounds={"typo": (1, 2)}),
        dict(noise=0.1, priors={"typo": LogNormal()}),
        dict(noise=0.1, tied=[("typo", "bandwidth")]),
    ],
)
def test_names_are_checked(via, options):
    with pytest.raises(ValueError, match="'typo' is not a parameter"):
        GP(Gaussian(0.7), via=via, **options).fit(*data())


@pytest.mark.parametrize(
    "options",
    [
        dict(bounds={"noise": (1, 2)}),
        dict(fixed=("bandwidth",)),
        dict(priors={"bandwidth": LogNormal()}),
        dict(fixed=True),
        dict(tied=[("noise", "bandwidth")]),
        dict(noise=0.1, bounds={"bandwidth": (1, 2)}),
    ],
)
def test_features_take_no_wishes(options):
    X, y = data()
    for how in ("features", Fourier(50)):
        for ask in (
            GP(Gaussian(0.7), via=how, **options).fit,
            GP(Gaussian(0.7), via=how, **options).partial_fit,
        ):
            with pytest.raises(ValueError, match="over features noise and scale alone"):
                ask(X, y)
    for fixed in (None, "all", ()):
        assert GP(Gaussian(0.7), 0.1, Fourier(500), fixed=fixed, random_state=0).fit(
            X, y
        ).kernel_ == Gaussian(0.7)


@pytest.mark.parametrize(
    "how",
    ["auto", "exact", "iterative", Landmarks(20)],
    ids=["auto", "exact", "iterative", "landmarks"],
)
def test_wishes_hold_in_a_stream(how):
    X, y = data(90)
    m = GP(
        Gaussian(0.7),
        via=how,
        bounds={"noise": (5.0, 6.0), "bandwidth": (2.0, 3.0)},
        random_state=0,
        n_restarts=0,
    )
    for at in (slice(0, 60), slice(60, 90)):
        m.partial_fit(X[at], y[at])
        assert 5 - 1e-6 <= m.noise_ <= 6 + 1e-6
        assert 2 - 1e-6 <= m.kernel_.kernel.bandwidth <= 3 + 1e-6
    assert m.plan_.settings["rows"] == 90


def test_wishes_hold_as_rows_come(tmp_path):
    """Over landmarks, also in a model from a file."""
    X, y = data(90)
    m = GP(Gaussian(0.7), via=Landmarks(20), bounds={"noise": (5.0, 6.0)}, random_state=0).fit(
        X[:60], y[:60]
    )
    noise = m.noise_
    save(m, tmp_path / "m.mercer")
    m = load(tmp_path / "m.mercer").partial_fit(X[60:], y[60:])
    assert m.noise_ == pytest.approx(noise)


def test_wishes_hold_in_the_steps_by_all_rows(monkeypatch):
    monkeypatch.setattr("mercer.models.gp.problem.MAX_SEARCH_ROWS", 60)
    X, y = data(200)
    for restores in (True, False):
        m = GP(
            Gaussian(0.7),
            via=Landmarks(30),
            bounds={"noise": (5.0, 6.0)},
            restore_variance=restores,
            random_state=0,
        ).fit(X, y)
        assert 5 - 1e-6 <= m.noise_ <= 6 + 1e-6


@pytest.mark.parametrize("size", [1e-3, 10.0, 1e6])
def test_amplitudes_are_in_the_units_of_y(size):
    X, y = data(size=size)
    for k, path in (
        (1.0 * Gaussian(0.7), "factor"),
        (1.0 * Gaussian(0.7) + 0.5 * Linear(), "terms__1__factor"),
    ):
        bounded = inner(GP(k, bounds={path: (0.2, 0.3)}, n_restarts=0).fit(X, y))[path]
        assert 0.2 - 1e-9 <= bounded <= 0.3 + 1e-9
        assert inner(GP(k, priors={path: LogNormal(5.0, 1e-4)}, n_restarts=0).fit(X, y))[
            path
        ] == pytest.approx(5.0, rel=0.05)
        assert inner(GP(k, fixed=(path,), n_restarts=0).fit(X, y))[path] == k.get_params()[path]


def test_the_rest_is_learnt_beside_a_bounded_amplitude():
    """As well as without the bounds, where they let it."""
    X, y = data(size=1e6)
    k = 1.0 * Gaussian(0.7) + 0.5 * Linear()
    free, held = (
        GP(k, bounds=b, n_restarts=0).fit(X, y) for b in (None, {"terms__1__factor": (1e-3, 1e16)})
    )
    assert held.log_marginal_likelihood_ == pytest.approx(free.log_marginal_likelihood_, abs=0.1)


def test_fixed_scale_and_all():
    X, y = data()
    assert GP(Gaussian(0.7), fixed=("scale",), n_restarts=0).fit(X, y).scale_ == pytest.approx(1.0)
    m = GP(2.0 * Gaussian(0.7), fixed=True).fit(X, y)
    assert m.kernel_ == 2.0 * Gaussian(0.7)
    assert m.scale_ == pytest.approx(1.0)
    assert (
        m.log_marginal_likelihood_
        >= GP(2.0 * Gaussian(0.7), 1.01 * m.noise_, prior_mean="y")
        .fit(X, y)
        .log_marginal_likelihood_
    )
    shaped = GP(Gaussian(0.7), fixed="all").fit(X, y)
    assert shaped.kernel_ == shaped.scale_ * Gaussian(0.7)
    assert shaped.scale_ > 30
    assert GP(2.0 * Gaussian(0.7), 0.1, fixed=True).fit(X, y).kernel_ == 2.0 * Gaussian(0.7)


def test_several_outputs_share_what_is_said():
    X, y = data()
    Y = np.column_stack([y, 50 * y])
    for options in (
        dict(bounds={"factor": (0.2, 0.3)}),
        dict(fixed=("factor",)),
        dict(fixed=True),
        dict(fixed="all"),
    ):
        m = GP(0.25 * Gaussian(0.7), n_restarts=0, **options).fit(X, Y)
        np.testing.assert_allclose(m.scale_, 1.0)
        assert 0.2 - 1e-9 <= m.posterior_.kernel.factor <= 0.3 + 1e-9


def test_tied_to_what_is_fixed():
    X, y = data()
    m = GP(
        Matern((0.5, 2.0, 1.0)),
        fixed=("bandwidth__1",),
        tied=[("bandwidth__0", "bandwidth__1"), ("bandwidth__2", "bandwidth__0")],
    )
    assert m.fit(np.column_stack([X, X[:, 0]]), y).kernel_.kernel.bandwidth == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("n", [50, 250])
def test_a_name_of_the_kernels_that_are_tried(n):
    X, y = data(n)
    m = GP(fixed=("bandwidth",), n_restarts=0).fit(X, y)
    np.testing.assert_allclose(m.kernel_.kernel.bandwidth, X.std(0) * np.sqrt(2))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(fixed=True), "give a kernel"),
        (dict(fixed=3), "fixed must be"),
        (dict(fixed=("noise",)), "give the noise as a number"),
        (dict(bounds=(1, 2)), "bounds must be by name"),
        (dict(priors=[1.0]), "priors must be by name"),
        (dict(tied=("bandwidth__0", "bandwidth__1")), "groups of two"),
        (dict(tied=[()]), "groups of two"),
        (dict(kernel=Matern(), bounds={"nu": (1, 2)}), "it chooses a formula"),
        (
            dict(kernel=Gaussian(), noise=0.1, fixed=(), bounds={"noise": (1, 2)}),
            "the noise is given",
        ),
        (
            dict(kernel=2.0 * Gaussian(), bounds={"factor": (1, 2), "scale": (1, 2)}),
            "'scale' has bounds or a prior, but is not learnt",
        ),
        (dict(kernel=Gaussian(), via="features", tied=("a", "b")), "groups of two"),
        (dict(kernel=Gaussian(), noise=0.1, bounds=3), "bounds must be"),
        (dict(noise=-np.ones(60)), r"got array\(\[-1., -\.\.\."),
    ],
)
def test_one_sentence_errors(options, match):
    with pytest.raises(ValueError, match=match) as e:
        GP(**options).fit(*data())
    assert len(str(e.value)) < 250
