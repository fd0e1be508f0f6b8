"""The traced source runs inside Triton, here through its interpreter (TRITON_INTERPRET=1, a process
of its own)."""

import os

import pytest

pytestmark = pytest.mark.gpu

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip(
        "Triton's interpreter needs TRITON_INTERPRET=1 before import", allow_module_level=True
    )

probe = pytest.importorskip(
    "bench.gpu_probe", reason="torch and triton are not installed", exc_type=ImportError
)


@pytest.mark.parametrize("name", probe.EXPRESSIONS)
def test_generated_tiles_equal_the_reference(name, tmp_path):
    error, _ = probe.check(probe.EXPRESSIONS[name], tmp_path, n=37, m=41)
    assert error < 1e-5


def test_parameters_are_arguments():
    assert (
        "2.5"
        not in probe.generate(probe.EXPRESSIONS["ARD Matern times Gaussian"]).split('"""', 2)[2]
    )
