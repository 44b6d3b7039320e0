"""Programs and settings of a machine's first boot, whoever made it: cloud-init's document, kubeadm, joining,
attestation."""
