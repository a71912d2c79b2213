"""What compiled code everywhere is made of: how kernels are compiled and passed on, exp and tanh, ranking, prefetching, vectors."""
