"""Commands from the control plane: how each is carried out in the cluster."""
