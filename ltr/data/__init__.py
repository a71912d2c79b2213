"""Queries, and what makes them: the LETOR parser, artificial data, click propensities."""
