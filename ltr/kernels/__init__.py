"""What all compiled code shares: how kernels are compiled, cached and passed on; exp and tanh, ranking, prefetching, vectors."""
