"""A small client of the Kubernetes API, for what a driver or a source puts into a cluster by itself."""
