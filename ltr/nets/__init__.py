"""LambdaRank nets."""
