"""The traced source runs inside Triton, here through its interpreter (TRITON_INTERPRET=1, a process of its own)."""
import os

import pytest

pytestmark = pytest.mark.gpu

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("Triton's interpreter needs TRITON_INTERPRET=1 before import", allow_module_level=True)

from bench.gpu_probe import EXPRESSIONS, check, generate


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_generated_tiles_equal_the_reference(name, tmp_path):
    error, _ = check(EXPRESSIONS[name], tmp_path, n=37, m=41)
    assert error < 1e-5


def test_parameters_are_arguments():
    assert "2.5" not in generate(EXPRESSIONS["ARD Matern times Gaussian"]).split('"""', 2)[2]
