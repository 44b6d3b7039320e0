"""What runs on a machine at its first boot, whoever made it: cloud-init's document, kubeadm, joining, attestation."""
