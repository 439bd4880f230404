#!/bin/sh
# bench/peers.sh - fetch the peers that carrel is measured beside
#
# From the distribution (this script only says which; installing them is yours):
#	bubblewrap firejail podman conmon crun uidmap slirp4netns passt
#	nodejs npm socat ripgrep		(for the two npm packages)
#	gcc make git rsync util-linux python3	(for the benchmark itself)
#	fuse-overlayfs				(beside copies of a project)
# From npm, into a directory of their own, never into the repository:
#	@anthropic-ai/sandbox-runtime (srt), @openai/codex (codex)
#
# bench/run.py looks in the same directory. What is missing it lists as absent.
set -eu

if [ "$(id -u)" = 0 ]; then
	# Not below /root: the benchmark runs as a normal user, who must be able to read it.
	default=/var/cache/carrel-bench
else
	default=${XDG_CACHE_HOME:-$HOME/.cache}/carrel-bench
fi
dir=${CARREL_BENCH_CACHE:-$default}/node

for tool in bwrap firejail podman conmon crun newuidmap pasta slirp4netns ip node npm socat rg cc git setpriv unshare rsync make fuse-overlayfs; do
	command -v "$tool" >/dev/null || echo "missing: $tool" >&2
done
command -v npm >/dev/null || exit 1

mkdir -p "$dir"
npm install --prefix "$dir" --no-audit --no-fund --loglevel=error \
	@anthropic-ai/sandbox-runtime @openai/codex
echo "in $dir:"
ls "$dir/node_modules/.bin"
