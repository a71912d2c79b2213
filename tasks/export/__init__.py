"""Models for other tools and of other tools, and scores of files."""
