"""The members of a control plane on EC2: machines, their volumes, backups of etcd."""
