#!/bin/sh
# tsan.sh COMMAND...: runs a command on the binaries of build-tsan/ (TILELANG_SANITIZE=thread). A race ends its process
# with status 66. There is no list of suppressions: what simulated programs do to their own memory is left out at its
# source (csrc/sim/devmem.h), and calls from Python, which is not built with ThreadSanitizer, by its module.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
export LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" PYTHONPATH="$root/build-tsan" TILELANG_BUILD="$root/build-tsan" PYTHONSAFEPATH=1
export TILELANG_SANITIZED=thread
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1 exitcode=66 report_signal_unsafe=0 ${TSAN_OPTIONS:-}"
exec "$@"
