"""Where searches start: at the kernel given, at it scaled to the data, or at kernels that have what
is named."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Periodic, RationalQuadratic, Sum
from mercer.models.gp.hyperparameters import HyperparameterSpec as Spec
from mercer.models.gp.starts import defaults, deviations, louder, scaled, starts
from mercer.priors import LogNormal

OPTIONS = dict(scale=True, unit=1.0, restarts=0, seed=0)


def rows(n=30, d=2):
    return Table(np.random.default_rng(0).normal(size=(n, d)) * np.arange(1, d + 1))


def kernels(spec, n=30, **options):
    """The forms among which the evidence chooses where no kernel is given."""
    found = starts(None, rows(n), spec, None, **{**OPTIONS, **options})
    return {type(s.space.kernel) for s in found}


def test_bandwidths_of_the_columns_they_see():
    X = rows()
    s = deviations(X)
    k = scaled(Gaussian((9.0, 9.0)) + 0.5 * Matern(9.0).on_columns([1]) + Periodic(9.0, 2.0), X)
    assert k.terms[0].bandwidth == pytest.approx(s * np.sqrt(2))
    assert k.terms[1].kernel.kernel.bandwidth == pytest.approx(s[1])
    assert k.terms[2] == Periodic(9.0, 2.0)
    assert deviations(Table(np.ones((4, 2)))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("n", [30, 250])
@pytest.mark.parametrize(
    "spec",
    [
        Spec(fixed=("bandwidth",)),
        Spec(bounds={"bandwidth": (0.1, 10.0)}),
        Spec(priors={"bandwidth__1": LogNormal()}),
    ],
    ids=["fixed", "bounds", "prior"],
)
def test_kernels_without_the_name_do_not_compete(n, spec):
    assert kernels(spec, n, rough=True) == {Matern, RationalQuadratic, Gaussian}


def test_kernels_with_the_name_do():
    assert kernels(Spec(), 250, rough=True) == {Matern, RationalQuadratic, Gaussian, Sum}
    assert kernels(Spec(bounds={"noise": (0.1, 1.0)}), 250, rough=True) == {
        Matern,
        RationalQuadratic,
        Gaussian,
        Sum,
    }
    assert kernels(Spec(bounds={"mixture": (0.1, 1.0)})) == {RationalQuadratic}
    assert kernels(Spec(bounds={"terms__1__factor": (0.1, 1.0)}), 250, rough=True) == {Sum}
    assert len(defaults(rows(250))) == len(defaults(rows(250), rough=True)) - 1


def test_what_no_kernel_has_is_refused():
    for spec, match in (
        (Spec(fixed=("width",)), "'width' is not a parameter"),
        (Spec(fixed=True), "give a kernel"),
    ):
        with pytest.raises(ValueError, match=match):
            kernels(spec, 250, rough=True)


def test_amplitudes_start_at_the_size_of_y():
    """Where the scale is held, what is not said of them must be in reach."""
    k = 1.0 * Gaussian() + 0.5 * Linear()
    assert louder(2.0 * k, 10.0) == 20.0 * k
    found = starts(
        k, rows(), Spec(bounds={"terms__1__factor": (0.2, 0.3)}), None, **{**OPTIONS, "unit": 1e6}
    )
    best = found[0]
    assert best.space.at(best.space.full(best.z)).terms[0].factor == pytest.approx(1e12)
    assert best.space.at(best.space.full(best.z)).terms[1].factor == pytest.approx(0.3)


def test_starts_keep_what_is_fixed():
    k = Gaussian((1.0, 2.0))
    found = starts(k, rows(), Spec(fixed=("bandwidth__1",)), None, **{**OPTIONS, "restarts": 5})
    at = [s.space.at(s.space.full(s.z)).bandwidth for s in found]
    assert {b[1] for b in at} == {2.0}
    assert (
        len({b[0] for b in at}) == 7
    )  # the given one, the scaled one at two noises, and five about it
    again = starts(k, rows(), Spec(fixed=("bandwidth__1",)), None, **{**OPTIONS, "restarts": 5})
    np.testing.assert_array_equal([s.z for s in found], [s.z for s in again])


def test_a_mapped_kernel_is_scaled_to_mapped_rows():
    X = Table(np.random.default_rng(0).normal(size=(50, 3)))
    S = [[100.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    inner = scaled(Matern((9.0, 9.0)), Table(X.data @ np.transpose(S)))
    assert scaled(Matern((9.0, 9.0)).mapped(S), X) == inner.mapped(S)
