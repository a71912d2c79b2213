"""What all rankers share, and those that learn nothing or mix others."""
