"""Commands of clusters, their profiles and snapshots, and what is given to their clients."""
