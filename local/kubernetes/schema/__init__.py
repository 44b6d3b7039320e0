"""Schema of the API of Kubernetes: types, their wire format, patches, and printed columns."""
