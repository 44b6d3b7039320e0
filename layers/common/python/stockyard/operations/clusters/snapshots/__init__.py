"""Lists snapshots of etcd and restores clusters from them."""
