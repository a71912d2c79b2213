"""What can be found out about a trained ranker: whether it is at a local optimum, and what its λ's did."""
