#!/bin/sh
# install.sh - install the clients that tests/clients starts, unless they are there
#
#	tests/clients/install.sh		prints the directory
#
# The versions are those of package.json. The directory is CARREL_CLIENTS, or
# /var/cache/carrel-tests/clients for root, whose home the test user cannot read, and
# ~/.cache/carrel-tests/clients for anybody else. It is put in place whole or not at all.

set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)

where() {
	if [ -n "${CARREL_CLIENTS-}" ]; then
		echo "$CARREL_CLIENTS"
	elif [ "$(id -u)" = 0 ]; then
		echo /var/cache/carrel-tests/clients
	else
		echo "${XDG_CACHE_HOME:-$HOME/.cache}/carrel-tests/clients"
	fi
}

# Scripts of packages do not run, or an optional one would want a compiler; but for two,
# which put the program into its place.
install_into() {
	cp "$here/package.json" "$1"
	cd "$1"
	npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
	node node_modules/@anthropic-ai/claude-code/install.cjs
	(cd node_modules/opencode-ai && node postinstall.mjs)
}

dir=$(where)
echo "$dir"
if cmp -s "$here/package.json" "$dir/package.json"; then
	exit 0
fi
# What we did not make we do not replace.
if [ -e "$dir" ] && ! grep -q '"carrel-test-clients"' "$dir/package.json" 2>/dev/null; then
	echo "install.sh: $dir holds something else: remove it, or set CARREL_CLIENTS" >&2
	exit 1
fi
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"
(install_into "$new") >&2
rm -rf "$dir"
mv "$new" "$dir"
