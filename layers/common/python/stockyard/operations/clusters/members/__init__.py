"""The members of control planes: machines, claims and sizes."""
