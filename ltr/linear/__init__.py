"""Linear rankers: least squares, conditional models and the classical baselines."""
