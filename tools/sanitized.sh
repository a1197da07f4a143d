#!/bin/sh
# sanitized.sh COMMAND...: runs a command on the binaries of build-asan/ (made by `make sanitize`).
# The sanitizers' libraries must come first in the process; Python itself is not checked for leaks.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
preload="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
export LD_PRELOAD="$preload" PYTHONPATH="$root/build-asan" TILELANG_BUILD="$root/build-asan" TILELANG_SANITIZED=1 PYTHONSAFEPATH=1
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
exec "$@"
