#!/bin/bash
# Coverage-guided fuzzing of the decoder, the loader and the execution core with clang's libFuzzer and AddressSanitizer.
#   tools/fuzz.sh build                                      build-fuzz/simfuzz
#   tools/fuzz.sh decode|verify|load|exec CHIP RUNS [libFuzzer's options]
#                                                            from the kept corpus; new inputs go to build-fuzz/corpus/
#   tools/fuzz.sh keep                                       the smallest set with the same coverage, into tests/sim/corpus
# Needs clang-22 and libclang-rt-22-dev. The kernels of the VALU are compiled without coverage (they have no branches
# that input could reach) but with the address checks.
set -eu
cd "$(dirname "$0")/.."
CLANG=${CLANG:-clang-22}
OUT=build-fuzz
FLAGS="-std=c11 -g1 -O1 -Icsrc -pthread -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer -D_GNU_SOURCE"
AVX2="-mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt"
AVX512="$AVX2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd"

SAN="-fsanitize=address,fuzzer-no-link,undefined -fno-sanitize=alignment,shift,float-cast-overflow -fno-sanitize-recover=undefined"

object() { # SOURCE FLAGS...: compiled when out of date
    local src=$1 obj=$OUT/obj/${1//\//_}.o
    shift
    if [ ! -e "$obj" ] || [ -n "$(find csrc -newer "$obj" \( -name '*.h' -o -name '*.inc' -o -name '*.def' -o -path "$src" \) -print -quit)" ]; then
        $CLANG $FLAGS "$@" -w -c "$src" -o "$obj"
    fi
}

build() {
    mkdir -p $OUT/obj
    local src running=0
    for src in csrc/base/*.c csrc/target/*.c csrc/isa/*.c csrc/sim/*.c csrc/tools/simfuzz.c; do
        case $src in
        *_avx512.c) object "$src" -fsanitize=address $AVX512 & ;;
        *_avx2.c) object "$src" -fsanitize=address $AVX2 & ;;
        */kern_base.c) object "$src" -fsanitize=address & ;;
        */check*.c) object "$src" $SAN -O2 -fno-sanitize-coverage=trace-cmp & ;; # loops over all registers
        *) object "$src" $SAN -DTL_LIBFUZZER & ;;
        esac
        running=$((running + 1))
        if [ $running -ge "${TILELANG_JOBS:-2}" ]; then
            wait -n || exit 1
            running=$((running - 1))
        fi
    done
    wait
    $CLANG -fsanitize=fuzzer,address,undefined -pthread $OUT/obj/*.o -o $OUT/simfuzz.tmp -ldl -lm
    mv $OUT/simfuzz.tmp $OUT/simfuzz
}

run() { # TARGET CHIP RUNS OPTIONS...
    local target=$1 chip=$2 runs=$3 most=65
    shift 3
    [ "$target" = load ] && most=6000
    mkdir -p "$OUT/corpus/$target.$chip" "$OUT/crash"
    SIMFUZZ_TARGET=$target SIMFUZZ_CHIP=$chip ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} \
        $OUT/simfuzz -runs="$runs" -max_len=$most -artifact_prefix="$OUT/crash/$target.$chip." -print_final_stats=1 "$@" \
        "$OUT/corpus/$target.$chip" "$(seeds "$target")"
}

seeds() { [ "$1" = verify ] && echo tests/sim/corpus/decode || echo "tests/sim/corpus/$1"; }

keep() { # small inputs that add coverage, at most KEEP a target and chip
    local dir target chip tmp
    for dir in $OUT/corpus/*.*; do
        target=$(basename "$dir" | cut -d. -f1)
        chip=$(basename "$dir" | cut -d. -f2)
        tmp=$(mktemp -d)
        SIMFUZZ_TARGET=$target SIMFUZZ_CHIP=$chip ASAN_OPTIONS=detect_leaks=0 \
            $OUT/simfuzz -merge=1 "$tmp" "$(seeds "$target")" "$dir" 2>"$tmp.log" || tail -3 "$tmp.log"
        python3 tools/fuzz_keep.py "$target" "$chip" "$tmp" "${KEEP:-200}"
        rm -rf "$tmp" "$tmp.log"
    done
}

case ${1:-} in
build) build ;;
keep) keep ;;
decode | verify | load | exec) run "$@" ;;
*) sed -n '2,8p' "$0"; exit 2 ;;
esac
