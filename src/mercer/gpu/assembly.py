"""Functions of float32 tiles by single instructions, which Triton's interpreter has not; and powers
of two of which some are polynomials, so that two units of the GPU work at once."""

from __future__ import annotations

import numpy as np

LANES = 8  # numbers that one text of powers of two takes
FAST = """@triton.jit
def {name}(x):
    return tl.inline_asm_elementwise({code!r}, {constraints!r}, [x], tl.float32, True, {pack})


"""
CODES = {  # results below the least normal number are zero, as are such arguments
    "exp2": "ex2.approx.ftz.f32 {y}, {x};",
    "log2": "lg2.approx.ftz.f32 {y}, {x};",
    "sqrt": "sqrt.approx.ftz.f32 {y}, {x};",
    "root": "{{ .reg .f32 a; abs.ftz.f32 a, {x}; sqrt.approx.ftz.f32 {y}, a; }}",
    "cos": "cos.approx.ftz.f32 {y}, {x};",
    "sin": "sin.approx.ftz.f32 {y}, {x};",
}
# of 2^f for |f| <= 1/2, the first of them times f; largest relative errors 1.0e-4 and 9.1e-8
POLYNOMIALS = {
    3: (0.6932829022407532, 0.2422109693288803, 0.05500893294811249),
    5: (0.6931470036506653, 0.24022242426872253, 0.05550733581185341, 0.009671512991189957,
        0.001326472731307149),
}  # fmt: skip
ROUND = 12582912.0  # 1.5 2^23: numbers near it are whole
LOWEST, HIGHEST = -127.0, 128.0  # whose powers come out as zero and infinity


def function(name: str) -> str:
    """Text of `fast_name`, one instruction a number."""
    code = CODES[name].format(y="$0", x="$1")
    return FAST.format(name=f"fast_{name}", code=code, constraints="=f,f", pack=1)


def powers_of_two(software: int, degree: int) -> str:
    """Text of `fast_exp2`, where so many in eight are a polynomial times a power put together of
    bits: x = i + f, |f| <= 1/2, 2^x = p(f) 2^i."""
    if not software:
        return function("exp2")
    ours = {(2 * i + 1) * LANES // (2 * software) for i in range(software)}
    lines = [
        _polynomial(i, degree) if i in ours else CODES["exp2"].format(y=f"${i}", x=f"${LANES + i}")
        for i in range(LANES)
    ]
    constraints = ",".join(["=f"] * LANES + ["f"] * LANES)
    return FAST.format(name="fast_exp2", code=" ".join(lines), constraints=constraints, pack=LANES)


def _polynomial(i: int, degree: int) -> str:
    first, *rest = reversed(POLYNOMIALS[degree])
    steps = [f"fma.rn.f32 p, f, {_hex(first)}, {_hex(rest[0])};"]
    steps += [f"fma.rn.f32 p, p, f, {_hex(c)};" for c in (*rest[1:], 1.0)]
    return " ".join([
        "{ .reg .f32 x, t, f, p; .reg .b32 a, b;",
        f"max.f32 x, ${LANES + i}, {_hex(LOWEST)}; min.f32 x, x, {_hex(HIGHEST)};",
        f"add.rn.f32 t, x, {_hex(ROUND)}; sub.rn.f32 f, t, {_hex(ROUND)}; sub.rn.f32 f, x, f;",
        *steps,
        f"mov.b32 a, t; mov.b32 b, p; shl.b32 a, a, 23; add.s32 a, a, b; mov.b32 ${i}, a; }}",
    ])  # fmt: skip


def _hex(value: float) -> str:
    """A float32 as PTX reads it."""
    return f"0f{np.float32(value).view(np.uint32):08X}"
