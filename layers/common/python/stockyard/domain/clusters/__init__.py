"""Rules of clusters: kinds of clouds and drivers, versions, control planes, groups."""
