"""The project's state on disk, below ``.lambdaflow/``."""
