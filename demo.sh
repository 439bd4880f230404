#!/bin/sh
# demo.sh - build carrel and see what a box lets through
#
# Installs what the build needs (Debian, as root), builds in build/, and runs a scripted agent
# twice in a copy of a sample project: with no box, to prove that what it tries does work
# on this machine, and in a box. What came of it is then judged on the host, not by what
# the agent says. Everything happens in a temporary directory and on 127.0.0.1.
#
# Exits with 0 when all that should be refused was refused, and nothing else.

set -eu
cd "$(dirname "$0")"
here=$(pwd)
carrel=$here/build/carrel

fail() {
	echo "demo.sh: $*" >&2
	exit 1
}

# ---- what the build needs ---------------------------------------------------------------

needed='gcc libc6-dev meson ninja-build pkg-config libseccomp-dev libmd-dev libvterm-dev zlib1g-dev git'
wanted='musl-tools' # a smaller, faster carrel

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing() {
	for p in "$@"; do
		installed "$p" || printf ' %s' "$p"
	done
}

install_missing() {
	if [ "$(id -u)" != 0 ]; then
		# shellcheck disable=SC2086
		missing=$(missing $needed)
		[ -z "$missing" ] ||
			fail "packages are missing; as root: apt-get update && apt-get install$missing"
		return 0
	fi
	# shellcheck disable=SC2086
	missing=$(missing $needed $wanted)
	[ -n "$missing" ] || return 0
	echo "Installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update
	# shellcheck disable=SC2086
	apt-get -qq install -y --no-install-recommends $missing >/dev/null
}

build() {
	if [ ! -w . ] || { [ -e build ] && [ ! -w build ]; }; then
		[ -x "$carrel" ] || fail "cannot write to $here/build"
		return 0 # somebody else's tree, and built
	fi
	echo 'Building in build/'
	[ -e build/build.ninja ] || meson setup build >/dev/null
	ninja -C build >build/demo.log || { cat build/demo.log; fail 'the build failed'; }
}

# ---- a small world to try it on ---------------------------------------------------------

tmp=     # the small world
work=    # our own files
helpers= # processes to end

clean_up() {
	trap - EXIT
	trap '' HUP INT TERM # and so they do not end the rm either
	# shellcheck disable=SC2086
	[ -z "$helpers" ] || kill $helpers 2>/dev/null || :
	rm -rf ${tmp:+"$tmp"} ${work:+"$work"}
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# make_world DIR: a home with a key, another project, and the sample project as a repository
make_world() {
	mkdir -p "$1/home/.ssh" "$1/other"
	echo 'demo-ssh-secret-4712' >"$1/home/.ssh/id_demo"
	echo 'echo profile' >"$1/home/.profile"
	echo 'my notes' >"$1/other/notes.txt"
	cp -R "$here/examples/demo/project" "$1/project"
	git -C "$1/project" init -q
	git -C "$1/project" config user.name Demo
	git -C "$1/project" config user.email demo@example.org
	mkdir -p "$1/project/.git/info"
	echo .env >"$1/project/.git/info/exclude"
	git -C "$1/project" add .
	git -C "$1/project" commit -q -m 'A project'
}

# A server that notes each connection, and a process with a secret in its environment.
start_helpers() {
	DEMO_TOKEN=demo-token-secret-4713 sleep 600 &
	helpers=$!
	: >"$work/accepted"
	port=0
	python=$(PATH="/usr/bin:$PATH" command -v python3) || return 0
	"$python" - "$work" <<-'EOF' &
		import os, socket, sys
		server = socket.create_server(("127.0.0.1", 0))
		with open(sys.argv[1] + "/port.new", "w") as f:
		    f.write(str(server.getsockname()[1]))
		os.rename(sys.argv[1] + "/port.new", sys.argv[1] + "/port")
		while True:
		    server.accept()[0].close()
		    with open(sys.argv[1] + "/accepted", "a") as f:
		        f.write("one\n")
	EOF
	helpers="$helpers $!"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ ! -e "$work/port" ] || break
		sleep 0.3
	done
	[ ! -e "$work/port" ] || port=$(cat "$work/port")
}

# What is in a directory: names, kinds, modes, owners and contents.
snapshot() {
	(cd "$1" && find . -exec stat -c '%A %u:%g %N' {} + && find . -type f -exec cksum {} +) |
		sort
}

# The agent's report, section one only: lines that begin with a verdict.
count() {
	sed '/^What it may/,$d' "$2" | grep -c "^  $1" || :
}

# ---- the demo ---------------------------------------------------------------------------

bad=0
# judge WORDS COMMAND...: a fact on the host that must hold
judge() {
	words=$1
	shift
	if "$@"; then
		printf '  %-12s %s\n' yes "$words"
	else
		printf '  %-12s %s\n' NO "$words"
		bad=1
	fi
}

only_edit_changed() {
	diff "$work/before" "$work/after" >"$work/changes" || :
	[ "$(grep -c '^[<>]' "$work/changes")" = 2 ] &&
		[ "$(grep -c '^[<>].* \./project/greet\.sh$' "$work/changes")" = 2 ]
}

edit_is_there() {
	[ "$(cd "$tmp/project" && sh ./greet.sh carrel)" = 'Hello, carrel!' ]
}

no_connection() {
	[ "$(wc -l <"$work/accepted")" = "$accepted" ]
}

no_secret() {
	! grep -rq 'demo-[a-z]*-secret' "$work/boxed" && ! grep -rqs --exclude=.env \
		'demo-[a-z]*-secret' "$tmp/project"
}

if command -v dpkg-query >/dev/null; then
	install_missing # elsewhere meson says what it misses
fi
build
tmp=$(mktemp -d "${TMPDIR:-/tmp}/carrel-demo.XXXXXX")
tmp=$(cd "$tmp" && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/carrel-demo-work.XXXXXX")
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export HOME="$tmp/home" DEMO_API_KEY=demo-key-secret-4714
"$carrel" check >"$work/check" || { cat "$work/check"; fail 'a box cannot be built here'; }
make_world "$work/plain"
make_world "$tmp"
cp examples/demo/agent.sh "$work/agent.sh"
start_helpers

(cd "$work/plain/project" && sh "$work/agent.sh" ../home ../other "$port") >"$work/unboxed"
tries=$(count '' "$work/unboxed")
accepted=$(wc -l <"$work/accepted")
[ "$(count refused "$work/unboxed")" = 0 ] ||
	{ cat "$work/unboxed"; fail 'the demo is of no use here: without a box it fails too'; }

cd "$tmp/project"
set -- --mount "$work/agent.sh:/agent.sh" -- sh /agent.sh "$tmp/home" "$tmp/other" "$port"
echo "A scripted agent goes to work in a copy of a sample project, $tmp/project,"
echo 'and tries more than it should. What the box lets through is seen below.'
echo
echo '---- The plan: all that the box will be  (carrel plan)'
echo
"$carrel" plan "$@"
echo
echo '---- The agent, in that box  (carrel run)'
echo
snapshot "$tmp" >"$work/before"
code=0
"$carrel" run -y "$@" >"$work/boxed" 2>&1 || code=$?
snapshot "$tmp" >"$work/after"
cat "$work/boxed"
echo
echo '---- And what is true on the host'
echo
judge "without a box, all $tries of the first list get through: tried in another copy" \
	[ "$tries" -ge 8 ]
judge "in the box, all $tries were refused" [ "$(count refused "$work/boxed")" = "$tries" ]
judge 'the box ended well' [ "$code" = 0 ]
judge 'greet.sh is edited' edit_is_there
judge 'nothing else changed: home, other project, .git, names, modes, contents' \
	only_edit_changed
judge 'none of the four secrets came out' no_secret
if [ "$port" = 0 ]; then
	echo '  not tried    to connect: there is no python3 to make a server with'
else
	judge 'the server on 127.0.0.1 saw nobody from the box' no_connection
fi
echo
[ "$bad" = 0 ] || { head -n 20 "$work/changes"; fail 'the box did not hold'; }
git --no-pager -C "$tmp/project" diff --stat
echo 'The box held. Try your own: build/carrel run -- CMD, in a project of yours.'
