# A control plane.
program=/usr/local/lib/stockyard/stockyard_machine.py
base="$7" manifests=/etc/stockyard/manifests
export KUBECONFIG=/etc/kubernetes/admin.conf
volume=/var/lib/control-plane
# On a machine whose disk is encrypted: what it is told of the Vault that keeps the key.
vault=/etc/stockyard/vault.json
disk_program=/usr/local/lib/stockyard/stockyard_disk.py

install_cryptsetup() {
    if command -v cryptsetup >/dev/null; then return 0; fi
    again apt-get update -q
    again apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 cryptsetup-bin
}

# The disk that Stockyard attaches while this machine boots: not the one that the machine has started from, nor the one
# by which a cloud tells it its first commands.
find_disk() {
    local disk root content
    root="$(lsblk --noheadings --output PKNAME "$(findmnt --noheadings --output SOURCE /)")" || return 1
    for disk in /dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol* /dev/xvdf /dev/vd[a-z] /dev/sd[a-z]; do
        if test "$(lsblk --noheadings --nodeps --output TYPE "$disk" 2>/dev/null)" = disk &&
            test "$(lsblk --noheadings --nodeps --output NAME "$disk")" != "$root"; then
            content="$(lsblk --noheadings --nodeps --output FSTYPE "$disk")"
            if test "$content" = iso9660 || test "$content" = vfat; then continue; fi
            echo "$disk"
            return 0
        fi
    done
    echo "the volume of etcd is not attached yet" >&2
    return 1
}

# A volume with anything on it is never formatted: it may be that of a machine before this one.
mount_volume() {
    local disk content uuid options=nofail,x-systemd.device-timeout=300
    if mountpoint --quiet "$volume"; then return 0; fi
    disk="$(find_disk)" || return 1
    if test -e "$vault"; then
        python3 "$disk_program" open "$disk" || return 1
        disk=/dev/mapper/stockyard-data
        # The disk is opened after the network is up, however long the Vault is away.
        options=nofail,_netdev,x-systemd.requires=stockyard-disk.service,x-systemd.device-timeout=infinity
    fi
    content="$(wipefs --noheadings "$disk")" || return 1
    if test -z "$content"; then mkfs.ext4 -q "$disk" || return 1; fi
    uuid="$(blkid --probe --match-tag UUID --output value "$disk")" || return 1
    install -d -m 0700 "$volume"
    # Without it the machine boots and can be looked at; the kubelet, which would begin an empty etcd, does not start.
    grep -qF "$uuid" /etc/fstab || echo "UUID=${uuid} ${volume} ext4 ${options} 0 2" >>/etc/fstab
    systemctl daemon-reload || return 1
    mount "$volume"
}

# The keys of the machine before: its data cannot be read without them, and nodes trust no other authority.
take_keys() {
    if test -d "${volume}/keys" && ! test -s /etc/kubernetes/admin.conf; then
        install -d /etc/kubernetes/pki
        cp -a "${volume}/keys/pki/." /etc/kubernetes/pki
        cp -a "${volume}/keys/stockyard/." /etc/stockyard
    fi
}

# What a try before has left is removed, but never the data of a control plane that was ready once.
init_control_plane() {
    local options=(--skip-token-print)
    if grep -qF certificateKey /etc/stockyard/kubeadm.yaml; then options+=(--upload-certs --skip-certificate-key-print); fi
    if test -d "${volume}/keys"; then
        options+=(--ignore-preflight-errors=all)
    elif test -s /etc/kubernetes/admin.conf; then
        kubeadm reset --force
    fi
    kubeadm init --config /etc/stockyard/kubeadm.yaml "${options[@]}"
}

# On a volume of another machine, and after a snapshot was restored, etcd knows its only member by another address:
# members that join would look for it there.
announce_member() {
    local pki=/etc/kubernetes/pki/etcd url id
    local runtime=(crictl --runtime-endpoint unix:///run/containerd/containerd.sock) client
    id="$("${runtime[@]}" ps --quiet --state running --name '^etcd$')" || return 1
    client=("${runtime[@]}" exec "$id" etcdctl --endpoints https://127.0.0.1:2379 --cacert "${pki}/ca.crt"
        --cert "${pki}/healthcheck-client.crt" --key "${pki}/healthcheck-client.key")
    url="$(sed -n 's/.*--initial-advertise-peer-urls=//p' /etc/kubernetes/manifests/etcd.yaml)" || return 1
    id="$("${client[@]}" member list | cut -d , -f 1)" || return 1
    if test "$(wc -l <<<"$id")" = 1; then "${client[@]}" member update "$id" --peer-urls "$url"; fi
}

# Members have no key but the derived one: what an older key has sealed is written anew.
seal_secrets() {
    kubectl get secrets --all-namespaces --output json | kubectl replace -f - >/dev/null
}

# A load balancer does not send a machine's own connections back to it, so its name means this machine here. Where there
# is none, only the cluster's machines know the name.
name_endpoint() {
    local endpoint
    endpoint="$(cat /etc/stockyard/endpoint)"
    grep -qF " ${endpoint}" /etc/hosts || echo "127.0.0.1 ${endpoint}" >>/etc/hosts
}

# Every manifest is checked before any is applied.
fetch_manifests() {
    local path
    while read -r _ path; do
        mkdir -p "$(dirname "${manifests}/${path}")"
        fetch "${base}/${path}" "${manifests}/${path}" || return 1
    done <"${manifests}/sums"
    (cd "$manifests" && sha256sum --check --quiet sums)
}

# Until the cloud's controller has seen a node, it takes no pods.
initialized() {
    local taints
    taints="$(kubectl get nodes --output 'jsonpath={.items[*].spec.taints[*].key}')" || return 1
    if grep -qF node.cloudprovider.kubernetes.io/uninitialized <<<"$taints"; then
        echo "the cloud's controller has not initialized this node yet" >&2
        return 1
    fi
}

if test -e "$vault"; then
    # First of all, because the token for it does not live long.
    begin unwrap
    python3 "$disk_program" unwrap
fi
begin packages
prepare_machine kubeadm kubelet kubectl
if test -e "$vault"; then install_cryptsetup; fi
begin volume
again mount_volume
take_keys
begin bootstrap
python3 "$program" bootstrap
name_endpoint
begin init
# A control plane that was there before needs a while after a restart, and holds what nothing brings back.
if ! { test -s /etc/kubernetes/admin.conf && again kubectl get --raw /readyz >/dev/null; }; then
    init_control_plane
fi
again kubectl get --raw /readyz
# With it any token of kubeadm's would get the certificate of any node's name. The agent approves, for the name of the
# token alone.
again kubectl delete clusterrolebinding kubeadm:node-autoapprove-bootstrap --ignore-not-found
if grep -qF certificateKey /etc/stockyard/kubeadm.yaml; then
    # kubeadm's Secret of the sealed authorities would go with its token after two hours.
    again announce_member
    again kubectl --namespace kube-system patch secret kubeadm-certs --patch '{"metadata":{"ownerReferences":null}}'
    if grep -qF '"first"' /etc/stockyard/api/encryption.yaml; then again seal_secrets; fi
fi
begin snapshot
again /usr/local/lib/stockyard/snapshot.sh
begin network
again fetch_manifests
again kubectl apply -f "$manifests"/flannel-io/flannel/*/Documentation/kube-flannel.yml
if test -e /etc/stockyard/overlay.json; then
    again kubectl --namespace kube-flannel set env daemonset/kube-flannel-ds FLANNELD_IFACE=stockyard0
fi
if test -s /etc/stockyard/administrator.json; then
    again kubectl apply -f /etc/stockyard/administrator.json
fi
begin cloud
if test -e "${manifests}/kustomization.yaml"; then
    again kubectl apply -k "$manifests"
    again initialized
fi
again kubectl wait --for=condition=Ready nodes --all --timeout=120s
begin agent
python3 "$program" agent
again kubectl apply --server-side --force-conflicts --field-manager=stockyard-agent -f /etc/stockyard/agent.json
rm -f /etc/stockyard/agent.json
begin report
python3 "$program" ready
(cd /etc/systemd/system && systemctl enable --now stockyard-*.timer)
