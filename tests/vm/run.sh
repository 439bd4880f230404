#!/bin/sh
# run.sh - run the tests that tests/vm/list names on each of the kernels
#
#	tests/vm/run.sh BUILD KERNELS
#
# BUILD is the directory of the build to test, KERNELS what tests/install.sh kernels printed. The
# kernels run side by side. Prints what pytest prints, kernel by kernel; fails if any of them failed.

set -eu
cd "$(dirname "$0")/../.."
build=$1 kernels=$2
uid=${CARREL_TEST_UID:-12345}
[ "$(id -u)" = 0 ] || uid=$(id -u)
work=$(mktemp -d "${TMPDIR:-/tmp}/carrel-vm-run.XXXXXX")
trap 'rm -rf "$work"' EXIT

# What a test compiles is compiled here: the emulated processor takes ten times as long.
cc -O1 -static -pthread -o "$build/attack" tests/escape/attack.c
series=$(grep -v '^#' tests/vm/kernels)

# on KERNEL: all tests there.
on() {
	# shellcheck disable=SC2046
	KEEP=$build tests/vm/boot.sh "$kernels/$1" "$uid" 1200 env CARREL="$build/carrel" \
		CARREL_TEST_ATTACK="$build/attack" CARREL_TEST_TIMEOUT=300 PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider -rs \
		$(grep -v '^#' tests/vm/list)
}

for kernel in $series; do
	{
		on "$kernel" >"$work/$kernel" 2>&1 && : >"$work/$kernel.passed"
	} &
done
wait
code=0
for kernel in $series; do
	echo "Linux $kernel:"
	cat "$work/$kernel"
	[ -e "$work/$kernel.passed" ] || code=1
done
exit $code
