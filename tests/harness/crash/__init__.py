"""The crash matrices: a world that ends at any call, and the judge of what is left."""
