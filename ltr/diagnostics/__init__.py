"""What to ask of a trained ranker: is it at a local optimum, and what did its λ's do."""
