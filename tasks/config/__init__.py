"""Configurations: the sections, the run that they make up, and how it is read."""
