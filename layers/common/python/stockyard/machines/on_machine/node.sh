# A node.
program=/usr/local/lib/stockyard/stockyard_node.py
# A machine may be taken back before it has joined.
systemctl enable --now --no-block stockyard-watch.service
begin packages
prepare_machine kubeadm kubelet
if ! systemctl is-active --quiet kubelet || ! test -s /etc/kubernetes/kubelet.conf; then
    begin join
    # What an earlier try left would stop kubeadm.
    kubeadm reset --force
    # The token is young here: it is asked for when all else is done.
    python3 "$program"
    kubeadm join --config /etc/stockyard/join.yaml
    rm -f /etc/stockyard/join.yaml
fi
systemctl enable --now --no-block stockyard-near.timer
