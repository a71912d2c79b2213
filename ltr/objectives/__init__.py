"""From measures to λ's: pair costs, constructions, terms, and the objective that rankers are trained on."""
