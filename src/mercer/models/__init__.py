"""Estimators and their algorithms, a family in one room: an estimator validates, asks for a plan, and holds one fitted value."""
