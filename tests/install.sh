#!/bin/sh
# install.sh - install what tests start and Debian does not have, unless it is there
#
#	tests/install.sh clients	the clients of tests/clients; prints the directory
#	tests/install.sh tools		the JavaScript tools of tests/matrix; the same
#
# The versions are those of package.json there. The directory is CARREL_CLIENTS or CARREL_TOOLS,
# or one of that name in /var/cache/carrel-tests for root, whose home the test user cannot read,
# and in ~/.cache/carrel-tests for anybody else. It is put in place whole or not at all.

set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)

case ${1-} in
clients) list=$here/clients/package.json dir=${CARREL_CLIENTS-} variable=CARREL_CLIENTS ;;
tools) list=$here/matrix/package.json dir=${CARREL_TOOLS-} variable=CARREL_TOOLS ;;
*)
	echo 'usage: tests/install.sh clients|tools' >&2
	exit 2
	;;
esac
kind=$1

if [ -n "$dir" ]; then
	:
elif [ "$(id -u)" = 0 ]; then
	dir=/var/cache/carrel-tests/$kind
else
	dir=${XDG_CACHE_HOME:-$HOME/.cache}/carrel-tests/$kind
fi

# Scripts of packages do not run, or an optional one would want a compiler; but for two,
# which put the program into its place.
install_into() {
	cp "$list" "$1"
	cd "$1"
	npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
	if [ "$kind" = clients ]; then
		node node_modules/@anthropic-ai/claude-code/install.cjs
		(cd node_modules/opencode-ai && node postinstall.mjs)
	fi
}

echo "$dir"
if cmp -s "$list" "$dir/package.json"; then
	exit 0
fi
# What we did not make we do not replace.
if [ -e "$dir" ] && ! grep -q "\"carrel-test-$kind\"" "$dir/package.json" 2>/dev/null; then
	echo "install.sh: $dir holds something else: remove it, or set $variable" >&2
	exit 1
fi
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"
(install_into "$new") >&2
rm -rf "$dir"
mv "$new" "$dir"
