"""From files to folds: reading, labels, cleaning, cuts, and the data doctor."""
