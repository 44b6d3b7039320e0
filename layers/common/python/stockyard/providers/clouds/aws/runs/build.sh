# Carries out the program of a run: sh stockyard-build.sh DIGEST RELEASE URL [DIGEST_OF_TOFU]
# DIGEST is that of stockyard-run.zip beside this file, RELEASE the version of OpenTofu, URL the place of its releases;
# both digests are SHA-256.
# curl takes a proxy from HTTPS_PROXY, and never leaves TLS.
set -eu

fail() {
    echo "stockyard: $1" >&2
    exit 1
}

fetch() {
    curl --fail --silent --show-error --location --proto =https --tlsv1.2 --connect-timeout 20 --max-time 300 \
        --retry 5 --output "$1" "$url/v$release/$1" ||
        fail "$1 of OpenTofu's release $release could not be fetched."
}

release=$2
url=$3
echo "$1  stockyard-run.zip" | sha256sum --check --status || fail "The program of the run has not come as it was sent."
tofu=${STOCKYARD_TOFU:-}
if [ -z "$tofu" ]; then
    case $(uname -m) in
        aarch64) machine=arm64 ;;
        x86_64) machine=amd64 ;;
        *) fail "There is no OpenTofu for $(uname -m)." ;;
    esac
    archive=tofu_${release}_linux_$machine.zip
    fetch "$archive"
    if [ -n "${4:-}" ]; then
        echo "$4  $archive" > checksum
    else
        fetch "tofu_${release}_SHA256SUMS"
        grep " $archive\$" "tofu_${release}_SHA256SUMS" > checksum || fail "The release names no checksum of $archive."
    fi
    sha256sum --check --status checksum || fail "$archive is not what its checksum says. It is not used."
    python3 -m zipfile --extract "$archive" tofu
    chmod 0755 tofu/tofu
    tofu=$PWD/tofu/tofu
fi
[ -x "$tofu" ] || fail "There is no program $tofu."
STOCKYARD_TOFU=$tofu
export STOCKYARD_TOFU
exec python3 stockyard-run.zip
