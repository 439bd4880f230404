# The build is Meson's; these are the names people look for first.
.PHONY: all demo test bench install format
all:
	@test -d build || meson setup build
	ninja -C build
demo:
	./demo.sh
test:
	./test.sh
bench: all
	/usr/bin/python3 bench/run.py
install: all
	meson install -C build
format:
	git ls-files '*.c' '*.h' | xargs clang-format -i
