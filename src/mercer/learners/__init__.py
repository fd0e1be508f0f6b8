"""Solvers over features and kernels: what an estimator asks for once its rows are statistics."""
