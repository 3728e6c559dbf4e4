#!/usr/bin/env bash
# Installs what the test of the web pages in a browser needs: Chromium with its driver and a font from Debian's packages, and
# axe-core from npm as DIR/axe.min.js. Does nothing if everything is installed. Exits with 3 if the installation fails.
#   hack/browser.sh DIR
set -euo pipefail
axe=4.14.1
sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5

cannot() {
  echo "browser: $1" >&2
  exit 3
}

# Tests that need a browser can start at once.
mkdir -p "$1"
exec 9>"$1/.lock"
flock 9

if ! command -v chromedriver >/dev/null || ! command -v chromium >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || cannot 'install chromium and chromium-driver, or run this as root on Debian'
  export DEBIAN_FRONTEND=noninteractive
  packages=(chromium chromium-driver fonts-dejavu-core)
  apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null 2>&1 \
    || { apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null; } \
    || cannot 'apt-get cannot install chromium and chromium-driver'
fi

[ -s "$1/axe.min.js" ] && exit 0
command -v npm >/dev/null || cannot 'npm is missing, so axe-core cannot be fetched'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
npm pack --silent --pack-destination "$scratch" "axe-core@$axe" >/dev/null || cannot "npm has no axe-core@$axe"
echo "$sha512  $scratch/axe-core-$axe.tgz" | sha512sum --check --quiet || cannot "the SHA-512 of axe-core@$axe differs from the pinned one; it is not installed"
tar -xzf "$scratch/axe-core-$axe.tgz" -C "$scratch" package/axe.min.js
mv "$scratch/package/axe.min.js" "$1/axe.min.js"
