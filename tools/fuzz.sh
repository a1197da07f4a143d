#!/bin/bash
# Coverage-guided fuzzing of what reads files and of the execution core with clang's libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer.
#   tools/fuzz.sh build [file] [exec]                        build-fuzz/simfuzz-file, build-fuzz/simfuzz-exec
#   tools/fuzz.sh TARGET CHIP RUNS [libFuzzer's options]     from the kept corpus; new inputs go to build-fuzz/corpus/
#   tools/fuzz.sh keep                                       the smallest inputs that add coverage, into tests/sim/corpus
# TARGET: decode, verify, load, meta, lines, bundle (csrc/tools/simfuzz.c), exec, launch (csrc/tools/simfuzz_run.c).
# Needs clang-22 and libclang-rt-22-dev. The kernels of the VALU are compiled without coverage (they have no branches
# that input could reach) but with the address checks.
set -eu
cd "$(dirname "$0")/.."
CLANG=${CLANG:-clang-22}
OUT=build-fuzz
FLAGS="-std=c11 -g1 -O1 -Icsrc -pthread -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer -D_GNU_SOURCE"
AVX2="-mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt"
AVX512="$AVX2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd"

SAN="-fsanitize=address,undefined -fno-sanitize=alignment,shift,float-cast-overflow -fno-sanitize-recover=undefined"
COVER="-fsanitize=fuzzer-no-link"
CMP="-fno-sanitize-coverage=trace-cmp"
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=8:detect_stack_use_after_return=0}

object() { # SOURCE OBJECT FLAGS...: compiled when out of date
    local src=$1 obj=$2
    shift 2
    if [ ! -e "$obj" ] || [ -n "$(find csrc -newer "$obj" \( -name '*.h' -o -name '*.inc' -o -name '*.def' -o -path "$src" \) -print -quit)" ]; then
        $CLANG $FLAGS "$@" -w -c "$src" -o "$obj"
    fi
}

# Two programs, since libFuzzer reads the counters of all code after each run: simfuzz-file follows the reading and
# checking of files, simfuzz-exec the execution core.
flags_of() { # PROGRAM SOURCE
    case $1:$2 in
    *_avx512.c) echo -fsanitize=address $AVX512 ;;
    *_avx2.c) echo -fsanitize=address $AVX2 ;;
    */kern_base.c) echo -fsanitize=address ;;
    *simfuzz*.c) echo $SAN $COVER -DTL_LIBFUZZER ;;
    file:*/isa/check*.c) echo $SAN $COVER $CMP -O2 ;;
    file:*/isa/* | file:*/base/*) echo $SAN $COVER $CMP -O2 ;;
    file:*/sim/image.c) echo $SAN $COVER -O2 -DSIM_HEAP_IMAGES ;;
    file:*/sim/metadata.c | file:*/sim/msgpack.c | file:*/sim/lines.c) echo $SAN $COVER -O2 ;;
    file:*/sim/verify_api.c | file:*/sim/hip_bundle.c | file:*/sim/tlsim.c) echo $SAN $COVER $CMP -O2 ;;
    file:*/sim/mem*.c) echo $SAN -O2 ;;
    file:*) echo $SAN ;;
    exec:*/sim/hip_*.c | exec:*/isa/check*.c | exec:*/isa/isa_print*.c) echo $SAN ;;
    exec:*/check*.c) echo $SAN $COVER $CMP -O2 ;;
    exec:*) echo $SAN $COVER $CMP ;;
    esac
}

tool() { [ "$1" = file ] && echo csrc/tools/simfuzz.c || echo csrc/tools/simfuzz_run.c; }

build() { # PROGRAMS...
    local src kind key obj running=0
    mkdir -p $OUT/obj
    for kind in "$@"; do
        for src in csrc/base/*.c csrc/target/*.c csrc/isa/*.c csrc/sim/*.c "$(tool "$kind")"; do
            object "$src" "$OUT/obj/$kind.${src//\//_}.o" $(flags_of "$kind" "$src") &
            running=$((running + 1))
            if [ $running -ge "${TILELANG_JOBS:-2}" ]; then
                wait -n || exit 1
                running=$((running - 1))
            fi
        done
        wait
        $CLANG -fsanitize=fuzzer,address,undefined -pthread $OUT/obj/"$kind".*.o -o $OUT/simfuzz.tmp -ldl -lm
        mv $OUT/simfuzz.tmp $OUT/simfuzz-"$kind"
    done
}

program() { case $1 in exec* | launch*) echo $OUT/simfuzz-exec ;; *) echo $OUT/simfuzz-file ;; esac; }

run() { # TARGET CHIP RUNS OPTIONS...
    local target=$1 chip=$2 runs=$3 most=65
    shift 3
    case $target in load) most=6000 ;; meta | lines | bundle) most=2000 ;; launch) most=130 ;; esac
    mkdir -p "$OUT/corpus/$target.$chip" "$OUT/crash"
    SIMFUZZ_TARGET=$target SIMFUZZ_CHIP=$chip $(program "$target") -runs="$runs" -max_len=$most -malloc_limit_mb=4500 -artifact_prefix="$OUT/crash/$target.$chip." -print_final_stats=1 "$@" \
        "$OUT/corpus/$target.$chip" "$(seeds "$target")"
}

seeds() { [ "$1" = verify ] && echo tests/sim/corpus/decode || echo "tests/sim/corpus/$1"; }

keep() { # small inputs that add coverage, at most KEEP a target and chip
    local dir target chip tmp
    for dir in $OUT/corpus/*.*; do
        target=$(basename "$dir" | cut -d. -f1)
        chip=$(basename "$dir" | cut -d. -f2)
        tmp=$(mktemp -d)
        SIMFUZZ_TARGET=$target SIMFUZZ_CHIP=$chip $(program "$target") -merge=1 "$tmp" "$(seeds "$target")" "$dir" 2>"$tmp.log" || tail -3 "$tmp.log"
        python3 tools/fuzz_keep.py "$target" "$chip" "$tmp" "${KEEP:-200}"
        rm -rf "$tmp" "$tmp.log"
    done
}

case ${1:-} in
build) shift && build ${*:-file exec} ;;
keep) keep ;;
decode | verify | load | meta | lines | bundle | exec | launch) run "$@" ;;
*) sed -n '2,9p' "$0"; exit 2 ;;
esac
