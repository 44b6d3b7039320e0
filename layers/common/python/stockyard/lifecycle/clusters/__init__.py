"""Legal moves of clusters: phases, changes, repaves and health of members."""
