#!/bin/sh
# setup-debian.sh PYTHON PACKAGE...: installs the Debian packages that are missing, and a C and C++ compiler, git and Python's
# venv and headers where PYTHON lacks them. Does nothing, and needs no root, when all is there.
set -eu
python=$1
shift
missing=
have() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
command -v dpkg-query >/dev/null 2>&1 || {
    echo "not a Debian system: install yourself what these packages hold: $*" >&2
    exit 0
}
for package in "$@"; do
    case $package in
    llvm-*-dev | liblld-*-dev) [ -z "${LLVM_CONFIG:-}" ] || continue ;; # another LLVM was chosen
    esac
    have "$package" || missing="$missing $package"
done
command -v gcc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v g++ >/dev/null 2>&1 || missing="$missing g++"
command -v "$python" >/dev/null 2>&1 || missing="$missing python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' \
    2>/dev/null || missing="$missing python3-dev"
[ -n "$missing" ] || exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
