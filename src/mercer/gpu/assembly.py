"""Functions of float32 tiles by single instructions, which Triton's interpreter has not."""

from __future__ import annotations

FAST = """@triton.jit
def {name}(x):
    return tl.inline_asm_elementwise({code!r}, "=f,f", [x], tl.float32, True, 1)


"""
CODES = {  # results below the least normal number are zero, as are such arguments
    "exp2": "ex2.approx.ftz.f32 {y}, {x};",
    "log2": "lg2.approx.ftz.f32 {y}, {x};",
    "sqrt": "sqrt.approx.ftz.f32 {y}, {x};",
    "root": "{{ .reg .f32 a; abs.ftz.f32 a, {x}; sqrt.approx.ftz.f32 {y}, a; }}",
    "cos": "cos.approx.ftz.f32 {y}, {x};",
    "sin": "sin.approx.ftz.f32 {y}, {x};",
}


def function(name: str) -> str:
    """Text of `fast_name`, one instruction a number."""
    code = CODES[name].format(y="$0", x="$1")
    return FAST.format(name=f"fast_{name}", code=code)
