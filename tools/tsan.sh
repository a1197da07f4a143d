#!/bin/sh
# tsan.sh COMMAND...: runs a command on the binaries of build-tsan/ (TILELANG_SANITIZE=thread). A race ends its process
# with status 66; what ThreadSanitizer says is shown at the end. There is no list of suppressions: what simulated
# programs do to their own memory is left out at its source (csrc/sim/devmem.h), and calls from Python, which is not
# built with ThreadSanitizer, by its module.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
log="$root/build-tsan/race"
rm -f "$log".*
status=0
LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" PYTHONPATH="$root/build-tsan" TILELANG_BUILD="$root/build-tsan" \
PYTHONSAFEPATH=1 TILELANG_SANITIZED=thread \
TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1 exitcode=66 report_signal_unsafe=0 log_path=$log ${TSAN_OPTIONS:-}" \
  "$@" || status=$?
for f in "$log".*; do
  [ ! -f "$f" ] || cat "$f" >&2
done
exit $status
