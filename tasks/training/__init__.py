"""Training one cell of a sweep, here or on several machines, and data sets made of trained rankers' scores."""
