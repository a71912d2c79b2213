"""Pages and drawings."""
