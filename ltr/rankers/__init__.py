"""What all rankers share, and the rankers that use existing scores or mix them."""
