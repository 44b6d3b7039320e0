"""A real control plane, built from Go modules: what the stand-in is compared with."""
