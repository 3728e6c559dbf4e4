#!/usr/bin/env bash
# Installs what the node takes from the distribution: runc, the CNI plugins, iptables and conntrack. Programs that are present
# stay; missing ones need root and apt. If a program cannot be installed, prints the reason to standard output. Arguments
# PROGRAM=PACKAGE are further ones.
set -euo pipefail
# A program or file, and Debian's package.
needed=(runc=runc conntrack=conntrack iptables=iptables ip=iproute2 openssl=openssl ptp=containernetworking-plugins
  portmap=containernetworking-plugins host-local=containernetworking-plugins loopback=containernetworking-plugins "$@")
missing() {
  local entry name
  for entry in "${needed[@]}"; do
    name=${entry%=*}
    command -v "$name" > /dev/null || [ -x "/usr/lib/cni/$name" ] || [ -x "/opt/cni/bin/$name" ] || echo "${entry#*=}"
  done | sort -u
}

mapfile -t packages < <(missing)
[ ${#packages[@]} -gt 0 ] || exit 0
command -v apt-get > /dev/null || { echo "these are missing, and there is no apt-get to install them: ${packages[*]}"; exit 1; }
export DEBIAN_FRONTEND=noninteractive
# An outdated package list may suffice.
apt-get update --quiet=2 >&2 || true
if ! apt-get install --quiet=2 --yes --no-install-recommends "${packages[@]}" >&2; then
  echo "apt-get cannot install ${packages[*]}"
  exit 1
fi
mapfile -t packages < <(missing)
[ ${#packages[@]} -eq 0 ] || { echo "the packages lack a needed program: ${packages[*]}"; exit 1; }
