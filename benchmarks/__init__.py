"""Measurements beside peers, in alternating runs on the same data; peers come with the extra ``benchmark``."""
