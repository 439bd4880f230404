#!/bin/sh
# Run each fuzz target for a while, from its seeds; fail when one finds something.
#
#	tests/fuzz/run.sh [-b BUILD] [SECONDS [TARGET...]]
#
# New inputs are kept only for as long as it runs; one that crashes is left in BUILD.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
build=$top/build-fuzz
if [ "${1-}" = -b ]; then
	build=$2
	shift 2
fi
seconds=${1-10}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- conversation dns git git_merge json lookup manifest manifest_json name opt path policy proxy quote record suite transcript

work=$(mktemp -d "${TMPDIR:-/tmp}/carrel-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export TMPDIR="$work"
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}"

failed=0
for name in "$@"; do
	mkdir "$work/$name"
	if "$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=5 \
		-rss_limit_mb=1024 -max_len=2048 -print_final_stats=1 -verbosity=0 \
		-artifact_prefix="$build/$name-" "$work/$name" "$top/tests/fuzz/corpus/$name" \
		>"$work/log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$work/log")
		echo "fuzz $name: $runs inputs"
	else
		tail -40 "$work/log"
		echo "fuzz $name: failed; the input is in $build/$name-*"
		failed=1
	fi
done
exit $failed
