#!/bin/sh
# The project's own test.
said=$(sh ./greet.sh carrel)
[ "$said" = "Hello, carrel!" ] || { echo "greet.sh says: $said" >&2; exit 1; }
