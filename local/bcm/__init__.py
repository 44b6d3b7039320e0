"""A head node of NVIDIA Base Command Manager in this process, and on a port: what is public of it, and no more."""
