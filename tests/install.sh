#!/bin/sh
# install.sh - install what tests start and Debian does not have, unless it is there
#
#	tests/install.sh clients	the clients of tests/clients; prints the directory
#	tests/install.sh tools		the JavaScript tools of tests/matrix; the same
#	tests/install.sh kernels	the kernels of tests/vm; the same
#
# The versions are those of package.json there, for kernels the newest in Debian of each series that
# tests/vm/kernels names; they are unpacked, and not installed. The directory is CARREL_CLIENTS,
# CARREL_TOOLS or CARREL_KERNELS, or one of that name in /var/cache/carrel-tests for root, whose home
# the test user cannot read, and in ~/.cache/carrel-tests for anybody else. It is put in place whole or
# not at all.

set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)

case ${1-} in
clients) list=$here/clients/package.json dir=${CARREL_CLIENTS-} variable=CARREL_CLIENTS ;;
tools) list=$here/matrix/package.json dir=${CARREL_TOOLS-} variable=CARREL_TOOLS ;;
kernels) list=$here/vm/kernels dir=${CARREL_KERNELS-} variable=CARREL_KERNELS ;;
*)
	echo 'usage: tests/install.sh clients|tools|kernels' >&2
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

# newest SERIES: Debian's newest package of that series, for any machine.
newest() {
	apt-cache pkgnames "linux-image-$1." |
		grep -E '^linux-image-[0-9.]+(-[0-9]+|\+deb[0-9]+)-amd64$' | sort -V | tail -n 1
}

# unpack_kernel SERIES: into a directory of that name.
unpack_kernel() {
	package=$(newest "$1")
	[ -n "$package" ] || { echo "install.sh: Debian has no package linux-image-$1.*" >&2; exit 1; }
	apt-get -qq -o APT::Sandbox::User=root download "$package"
	dpkg-deb -x "$package"_*.deb "$1"
	rm "$package"_*.deb
	version=${package#linux-image-}
	PATH=$PATH:/sbin:/usr/sbin depmod -b "$1" "$version"
}

unpack_kernels() (
	cd "$1"
	[ "$(id -u)" != 0 ] || apt-get -qq update
	grep -v '^#' "$list" | while read -r series; do
		unpack_kernel "$series"
	done
)

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
kept=$dir/$(basename "$list")
if cmp -s "$list" "$kept"; then
	exit 0
fi
# What we did not make we do not replace.
if [ -e "$dir" ] && ! grep -q "carrel-test-$kind" "$kept" 2>/dev/null; then
	echo "install.sh: $dir holds something else: remove it, or set $variable" >&2
	exit 1
fi
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"
if [ "$kind" = kernels ]; then
	unpack_kernels "$new" >&2
	cp "$list" "$new"
else
	(install_into "$new") >&2
fi
rm -rf "$dir"
mv "$new" "$dir"
