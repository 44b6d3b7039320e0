"""People in simulated hours: what they do to nodes and pods, and a judge of the pods that wait."""
