#!/bin/sh
# bench/slirp.sh - run a program in a network namespace that slirp4netns connects
#
#	slirp.sh PROGRAM [ARGUMENT]...
#
# The namespace says its process, slirp4netns says that it is ready, then the program runs.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/pid" "$dir/ready" "$dir/end"
# shellcheck disable=SC2016
unshare --user --map-root-user --net -- /bin/sh -c \
	'dir=$1; shift; echo $$ >"$dir/pid"; read -r _ <"$dir/ready"; exec "$@"' sh "$dir" "$@" &
box=$!
read -r pid <"$dir/pid"
slirp4netns --configure --mtu=65520 --ready-fd=3 --exit-fd=4 "$pid" tap0 \
	3>"$dir/ready" 4<>"$dir/end" >/dev/null 2>&1 &
slirp=$!
code=0
wait "$box" || code=$?
kill "$slirp" 2>/dev/null || :
wait "$slirp" 2>/dev/null || :
exit "$code"
