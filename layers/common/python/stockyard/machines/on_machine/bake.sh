# An image: what every machine of this release would install and fetch at its first boot.
program=none
begin packages
install_packages kubeadm kubelet kubectl
systemctl start containerd
begin images
again kubeadm config images pull --kubernetes-version "v${release}"
rm -f /etc/apt/sources.list.d/kubernetes.list
cloud-init clean --logs --machine-id
