#!/bin/sh
# test.sh - build carrel in all its variants and pass all tests
#
#	./test.sh		everything
#	./test.sh quick		no sanitizers, no fuzzing, no other kernels
#	./test.sh PART...	unit layers golden cli limits report real clients eval matrix net escape tripwire
#				degrade fault vm asan fuzz demo builds shell
#
# As root on Debian it installs the packages that are missing; as anybody else it says which.
# The clients and the JavaScript tools that are tested are installed with npm by tests/install.sh
# and kept (1.2 GB); with CARREL_NO_CLIENTS=1 these tests are skipped. The part `vm` boots Debian's
# kernels 6.1 and 6.12 in QEMU; they are unpacked and kept in the same way (0.8 GB), and with
# CARREL_NO_VM=1 the part says that it did nothing.
# Whole-program tests run as a normal user either way. Started by root, four groups of parts run
# at once, each with a user of its own, because most tests wait more than they work. A group's
# output is shown when it has ended. The builds stay in build-test/, build-asan/,
# build-fuzz/, build-release/ and build-cov/ (in a temporary directory where the tree is not
# ours to write to); everything else that is made is removed.
#
# The last line is the sum; the exit code is 0 when nothing failed.

set -eu
cd "$(dirname "$0")"
here=$(pwd)

group_1='unit layers golden cli limits report'
group_2='net clients eval matrix degrade fault'
group_3='asan fuzz'
group_4='escape tripwire real demo builds shell vm'
parts="$group_1 $group_2 $group_3 $group_4"
fuzz_seconds=${FUZZ_SECONDS:-5}

# Not with the sanitizers, whose runtime needs rlimits, address space and /proc, and reports a SIGSEGV
# as its own.
not_with_sanitizers='
tests/cli/test_control.py::test_events_of_a_long_record
tests/degrade/test_degrade.py::test_kernel[no limits]
tests/degrade/test_degrade.py::test_machine[proc is not there]
tests/fault/test_fault.py::test_killed_while_running[SIGSEGV of the supervisor]
'

packages='gcc libc6-dev meson ninja-build pkg-config libseccomp-dev libmd-dev libvterm-dev zlib1g-dev musl-tools
	libcmocka-dev clang clang-format libclang-rt-dev shellcheck binutils python3 python3-venv
	python3-pytest python3-pexpect python3-jsonschema mandoc bash zsh fish git gdb tmux vim
	less procps sqlite3 strace systemd bindfs openssh-client openssh-server socat iproute2 bubblewrap
	util-linux bsdextrautils make tar xz-utils curl wget openssl postgresql golang-go
	cargo rsync ripgrep mypy python3-dotenv chromium
	qemu-system-x86 busybox-static cpio kmod e2fsprogs'

say() {
	printf '%s\n' "$*"
}

fail() {
	say "test.sh: $*" >&2
	exit 1
}

# ---- what the tests need ----------------------------------------------------------------

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages() {
	for package in $packages; do
		installed "$package" || printf ' %s' "$package"
	done
	# Whoever has these from elsewhere has no use for Debian's.
	command -v node >/dev/null || printf ' nodejs'
	command -v npm >/dev/null || printf ' npm'
	command -v javac >/dev/null || printf ' default-jdk-headless'
}

get_packages() {
	command -v dpkg-query >/dev/null || return 0 # not Debian: what is missing will show
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	[ "$(id -u)" = 0 ] ||
		fail "packages are missing; as root: apt-get update && apt-get install$missing"
	say "Installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update
	# shellcheck disable=SC2086
	apt-get -qq install -y --no-install-recommends $missing >/dev/null
}

get_clients() {
	[ "${CARREL_NO_CLIENTS-}" != 1 ] || return 0
	[ -z "${clients_checked-}" ] || return 0
	export clients_checked=1
	CARREL_CLIENTS=$(timeout -k 10 1500 tests/install.sh clients 2>"$work/log") ||
		{ cat "$work/log"; fail 'cannot install the clients (CARREL_NO_CLIENTS=1: without)'; }
	export CARREL_CLIENTS
}

get_tools() {
	[ "${CARREL_NO_CLIENTS-}" != 1 ] || return 0
	CARREL_TOOLS=$(timeout -k 10 1500 tests/install.sh tools 2>"$work/log") ||
		{ cat "$work/log"; fail 'cannot install the tools (CARREL_NO_CLIENTS=1: without)'; }
	export CARREL_TOOLS
}

get_kernels() {
	CARREL_KERNELS=$(timeout -k 10 900 tests/install.sh kernels 2>"$work/log") ||
		{ cat "$work/log"; fail 'cannot get the kernels (CARREL_NO_VM=1: without)'; }
	export CARREL_KERNELS
}

# ---- building ---------------------------------------------------------------------------

work=$(mktemp -d "${TMPDIR:-/tmp}/carrel-tests.XXXXXX")
beside='' # the other groups: process groups
trap 'for group in $beside; do kill -- "-$group" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# builds DIR: a directory of the name for a build, in the tree if that can be written to.
builds() {
	if [ -e "$here/$1" ]; then
		if [ -w "$here/$1" ]; then say "$here/$1"; else say "$work/$1"; fi
	elif [ -w "$here" ]; then
		say "$here/$1"
	else
		say "$work/$1"
	fi
}

# build DIR TARGET OPTION...: set it up if it is not, and bring it up to date.
build() {
	dir=$1 target=$2
	shift 2
	say "Building $(basename "$dir")"
	if [ ! -e "$dir/build.ninja" ] || ! meson configure "$dir" "$@" >"$work/log" 2>&1; then
		rm -rf "$dir"
		meson setup "$dir" "$@" >"$work/log" 2>&1 ||
			{ cat "$work/log"; fail "cannot set up $dir"; }
	fi
	ninja -C "$dir" "$target" >"$work/log" 2>&1 ||
		{ tail -60 "$work/log"; fail "cannot build $dir"; }
}

build_test() {
	[ -z "${test_build-}" ] || return 0
	test_build=$(builds build-test)
	export test_build
	build "$test_build" all -Dtest_hooks=true -Dunit_tests=true
}

build_asan() {
	asan_build=$(builds build-asan)
	build "$asan_build" all -Dtest_hooks=true -Dunit_tests=true -Dbuildtype=debugoptimized \
		-Db_sanitize=address,undefined -Db_lundef=false
}

build_fuzz() {
	fuzz_build=$(builds build-fuzz)
	CC=clang build "$fuzz_build" fuzz -Dfuzz=true
}

# ---- counting ---------------------------------------------------------------------------

summary=${CARREL_TEST_SUMMARY-$work/summary}
: >>"$summary"

# sum WORD: how many were that, in all parts.
sum() {
	sed -n "s/.* \\([0-9]*\\) $1.*/\\1/p" "$summary" | awk '{ n += $1 } END { print n + 0 }'
}

# number PATTERN: the sum of the numbers that the pattern's group finds in the log.
number() {
	sed -n "s/$1/\\1/p" "$work/log" | awk '{ n += $1 } END { print n + 0 }'
}

# count NAME EXIT-CODE PASSED FAILED SKIPPED: a part is over.
count() {
	failed=$4
	[ "$2" = 0 ] || [ "$failed" != 0 ] || failed=1
	line=$(printf '%-9s %s passed, %s failed' "$1" "$3" "$failed")
	[ "$5" = 0 ] || line="$line, $5 skipped"
	say "$line" | tee -a "$summary"
}

# run COMMAND...: what it prints goes to the log and, if it fails, is shown.
run() {
	code=0
	timeout -k 10 2400 "$@" >"$work/log" 2>&1 || code=$?
	[ "$code" = 0 ] || tail -400 "$work/log"
}

# ---- the parts --------------------------------------------------------------------------

# unit_tests NAME BUILD: each case of each program counts.
unit_tests() {
	run meson test -C "$2" --no-rebuild --print-errorlogs
	cp "$2/meson-logs/testlog.txt" "$work/log"
	ran=$(number '^\[==========\] \([0-9]*\) test(s) run\..*')
	passed=$(number '^\[  PASSED  \] \([0-9]*\) test(s)\..*')
	# A program that did not come to its end failed, too.
	broken=$(($(grep -c 'Running [0-9]* test(s)' "$work/log") -
		$(grep -c ' test(s) run\.' "$work/log")))
	count "$1" "$code" "$passed" $((ran - passed + broken)) 0
}

# python_tests NAME BUILD PATH...: pytest on these files and directories.
python_tests() {
	name=$1 carrel=$2/carrel
	shift 2
	run env CARREL="$carrel" PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider "$@"
	tail -1 "$work/log" | sed 's/^/ /' >"$work/last" && mv "$work/last" "$work/log"
	count "$name" "$code" "$(of passed)" $(($(of failed) + $(of error))) "$(of skipped)"
}

# python_pair NAME BUILD PATHS PATHS: the same on two lists at a time. Only for tests that do not
# look at the machine as a whole, and wait more than they work.
python_pair() {
	name=$1 carrel=$2/carrel other_code=0
	# shellcheck disable=SC2086
	timeout -k 10 1500 env CARREL="$carrel" PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider $4 >"$work/other" 2>&1 &
	other=$!
	# shellcheck disable=SC2086
	run env CARREL="$carrel" PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider $3
	wait "$other" || other_code=$?
	[ "$other_code" = 0 ] || { tail -400 "$work/other"; code=$other_code; }
	{ tail -1 "$work/log"; tail -1 "$work/other"; } | sed 's/^/ /' >"$work/last"
	mv "$work/last" "$work/log"
	count "$name" "$code" "$(of passed)" $(($(of failed) + $(of error))) "$(of skipped)"
}

# of WORD: how many pytest says were that.
of() {
	number ".*[^0-9]\\([0-9][0-9]*\\) $1.*"
}

part_unit() {
	build_test
	unit_tests unit "$test_build"
}

part_layers() {
	build_test
	python_tests layers "$test_build" tests/test_layers.py
}

part_eval() {
	get_clients
	build_test
	python_tests eval "$test_build" tests/eval
}

part_clients() {
	get_clients
	build_test
	python_pair clients "$test_build" 'tests/clients --ignore tests/clients/test_mine.py' \
		tests/clients/test_mine.py
}

part_matrix() {
	get_tools
	build_test
	python_tests matrix "$test_build" tests/matrix
}

part_net() {
	get_clients
	build_test
	python_tests net "$test_build" tests/net
}

# The same tests on other kernels, as a normal user with a part of the cgroup v2 tree.
part_vm() {
	if [ "${CARREL_NO_VM-}" = 1 ]; then
		say 'vm        not run: CARREL_NO_VM=1'
		return 0
	fi
	get_kernels
	build_test
	run tests/vm/run.sh "$test_build" "$CARREL_KERNELS"
	sed -n 's/^[0-9].* in [0-9.]*s.*/ &/p' "$work/log" >"$work/last" && mv "$work/last" "$work/log"
	count vm "$code" "$(of passed)" $(($(of failed) + $(of error))) "$(of skipped)"
}

part_asan() {
	get_clients
	build_asan
	export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1
	export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
	unit_tests 'asan unit' "$asan_build"
	# What others' clients and programs take minutes for shows nothing more of carrel's own memory,
	# nor do many forms of one question, nor the kernel's side of a box. Three runs, because each
	# has a time limit.
	set -- --ignore tests/cli/test_help.py --ignore tests/cli/test_network_page.py \
		--ignore tests/cli/test_root.py --ignore tests/report/test_page.py \
		--ignore tests/fault/test_looks.py \
		--ignore tests/net/test_net_programs.py --ignore tests/net/test_net_agents.py \
		--ignore tests/net/test_net_page.py
	set -f # names have spaces and brackets
	IFS='
'
	for name in $not_with_sanitizers; do
		set -- "$@" --deselect "$name"
	done
	unset IFS
	set +f
	python_tests asan "$asan_build" tests/cli tests/golden tests/limits tests/report "$@"
	python_tests 'asan net' "$asan_build" tests/net tests/degrade tests/fault "$@"
	python_tests 'asan box' "$asan_build" tests/escape --ignore tests/escape/test_kernel.py \
		--ignore tests/escape/test_through_exec.py
	unset ASAN_OPTIONS UBSAN_OPTIONS
}

part_fuzz() {
	build_fuzz
	run tests/fuzz/run.sh -b "$fuzz_build" "$fuzz_seconds"
	count fuzz "$code" "$(grep -c '^fuzz .* inputs$' "$work/log")" \
		"$(grep -c '^fuzz .*: failed' "$work/log")" 0
}

part_demo() {
	run ./demo.sh
	count demo "$code" $((code == 0)) $((code != 0)) 0
}

# holds COMMAND...: one more that is so, or is not.
holds() {
	if "$@" >"$work/log" 2>&1; then
		good=$((good + 1))
	else
		bad=$((bad + 1))
		say "not so: $*"
	fi
}

is_static() {
	readelf -lW "$1" >"$work/headers" && ! grep -q INTERP "$work/headers"
}

has_hooks() {
	grep -q CARREL_TEST_FAIL "$1"
}

has_no_hooks() {
	! has_hooks "$1"
}

counts_coverage() {
	GCOV_PREFIX=$work/coverage "$1" version && [ -n "$(find "$work/coverage" -name '*.gcda')" ]
}

# The variants that nothing else here builds, and what makes them such.
part_builds() {
	build_test
	release=$(builds build-release) coverage=$(builds build-cov) good=0 bad=0
	build "$release" carrel
	build "$coverage" carrel -Dbuildtype=debug -Db_coverage=true -Dtest_hooks=true
	holds is_static "$release/carrel"
	holds has_no_hooks "$release/carrel"
	holds has_hooks "$test_build/carrel"
	holds counts_coverage "$coverage/carrel"
	count builds 0 $good $bad 0
}

part_shell() {
	if ! command -v shellcheck >/dev/null; then
		say 'shell     not checked: no shellcheck'
		return 0
	fi
	good=0 bad=0
	for script in $(find . -name '*.sh' ! -path './build*' ! -path '*/node_modules/*') .ci/run; do
		run shellcheck "$script"
		if [ "$code" = 0 ]; then good=$((good + 1)); else bad=$((bad + 1)); fi
	done
	count shell 0 $good $bad 0
}

run_part() {
	case $1 in
	unit | layers | clients | eval | matrix | net | vm | asan | fuzz | demo | builds | shell)
		"part_$1"
		;;
	golden | cli | limits | report | real | escape | tripwire | degrade | fault)
		build_test
		python_tests "$1" "$test_build" "tests/$1"
		;;
	*)
		fail "no such part: $1 (there are: quick $parts)"
		;;
	esac
}

case ${1-} in
-h | --help)
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
	exit 0
	;;
'') ;;
quick)
	group_3='' group_4=${group_4% vm}
	;;
*)
	group_1=$* group_2='' group_3='' group_4=''
	;;
esac
for part in $group_1; do
	case " $parts " in
	*" $part "*) ;;
	*) fail "no such part: $part (there are: quick $parts)" ;;
	esac
done

# start_group UID PART...: run these parts beside ours, as another user.
start_group() {
	[ $# -gt 1 ] || return 0
	uid=$1
	shift
	CARREL_TEST_UID=$uid CARREL_TEST_SUMMARY=$summary setsid "$0" "$@" >"$work/group-$uid" 2>&1 &
	beside="$beside $!"
}

get_packages
if [ -n "$group_2" ] && [ "$(id -u)" = 0 ]; then
	get_clients
	get_tools
	build_test
	# shellcheck disable=SC2086
	{
		start_group 12346 $group_2
		start_group 12347 $group_3
		start_group 12348 $group_4
	}
	group_2='' group_3='' group_4=''
fi
for part in $group_1 $group_2 $group_3 $group_4; do
	run_part "$part"
done
if [ -n "${CARREL_TEST_SUMMARY-}" ]; then # we are one of those groups
	exit 0
fi
for group in $beside; do
	wait "$group" || count 'a group' 1 0 0 0
done
if [ -n "$beside" ]; then
	beside=''
	cat "$work"/group-*
fi
say
cat "$summary"
say
say "$(sum passed) passed, $(sum failed) failed"
[ "$(sum failed)" = 0 ]
