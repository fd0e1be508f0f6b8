"""Kernels on a GPU: the traced formula inside a fused Triton tile; needs torch and triton."""
