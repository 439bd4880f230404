#!/bin/sh
# boot.sh - run a command on another kernel, as a normal user, in a virtual machine
#
#	tests/vm/boot.sh KERNEL UID SECONDS COMMAND...
#
# KERNEL is a directory with boot/vmlinuz-* and lib/modules/*, as tests/install.sh kernels unpacks
# one. The machine is QEMU's emulation of a processor: it needs neither root nor /dev/kvm, and is
# about ten times slower than this one. Its root is this machine's, read-only, by 9p; /tmp is an
# empty ext4 file system, because tmpfs has no user attributes before Linux 6.6; /run, /home and
# /var/tmp are tmpfs. It has no network but lo. There is only cgroup v2, and COMMAND runs in a group
# whose parent belongs to UID, as below a systemd user session. The working directory and, with
# KEEP=DIR, one more are seen at their paths even below /tmp. Prints what COMMAND prints and exits
# as COMMAND does; with 125 and the end of the console where the machine failed.

set -eu
PATH=$PATH:/usr/sbin:/sbin
kernel=$1 uid=$2 seconds=$3
shift 3
work=$(mktemp -d "${TMPDIR:-/tmp}/carrel-vm.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
version=$(ls "$kernel/lib/modules")

# quoted WORD...: as one line for a shell.
quoted() {
	for word; do
		printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
	done
}

# ---- the initramfs: busybox, modules, and the two scripts that lead to COMMAND ----------------

top=$work/initramfs
mkdir -p "$top/bin" "$top/modules" "$top/proc" "$top/sys" "$top/dev" "$top/new" "$top/disk"
cp "$(command -v busybox)" "$top/bin/busybox"
ln -s busybox "$top/bin/sh"
for module in virtio_pci virtio_blk 9pnet_virtio 9p ext4 overlay fuse veth dummy nf_tables \
	nft_tproxy nf_tproxy_ipv4 nf_tproxy_ipv6 nft_redir nft_chain_nat nft_socket; do
	modprobe -d "$kernel" -S "$version" --show-depends "$module" 2>/dev/null || :
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
while read -r module; do
	cp "$module" "$top/modules/"
	basename "$module"
done <"$work/modules" >"$top/modules/order"

# As root: mounts, then a new root. chroot would not do: who is in one may make no user namespace.
cat >"$top/init" <<INIT
#!/bin/sh
b=/bin/busybox
\$b mount -t proc proc /proc
\$b mount -t sysfs sys /sys
\$b mount -t devtmpfs dev /dev
while read -r module; do \$b insmod "/modules/\$module"; done </modules/order
\$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /new || \$b poweroff -f
for dir in $(quoted "$PWD" "${KEEP:-$PWD}"); do
	\$b mkdir -p "/keep\$dir"
	\$b mount -o bind "/new\$dir" "/keep\$dir"
done
for dir in run var/tmp home root; do \$b mount -t tmpfs -o mode=1777,nosuid,nodev t "/new/\$dir"; done
\$b mount -t ext4 -o noatime /dev/vda /new/tmp || \$b poweroff -f
\$b chmod 1777 /new/tmp
for dir in $(quoted "$PWD" "${KEEP:-$PWD}"); do
	\$b mkdir -p "/new\$dir" 2>/dev/null
	\$b mount -o bind "/keep\$dir" "/new\$dir"
	\$b umount "/keep\$dir"
done
\$b mount -t proc -o nosuid,nodev,noexec proc /new/proc
\$b mount -t sysfs sys /new/sys
\$b mount -t devtmpfs dev /new/dev
\$b mkdir -p /new/dev/pts /new/dev/shm /new/run/user/$uid /new/home/user /new/run/vm
\$b mount -t devpts -o ptmxmode=666,gid=5 pts /new/dev/pts
\$b mount -t tmpfs -o mode=1777 shm /new/dev/shm
\$b ln -sf /proc/self/fd /new/dev/fd
\$b chown $uid:$uid /new/run/user/$uid /new/home/user
\$b chmod 700 /new/run/user/$uid
\$b chmod 666 /new/dev/fuse
\$b mount -t cgroup2 -o nsdelegate cgroup /new/sys/fs/cgroup
cd /new/sys/fs/cgroup
\$b mkdir -p user/tests
for controller in cpu memory pids io; do
	echo "+\$controller" >cgroup.subtree_control
	echo "+\$controller" >user/cgroup.subtree_control
done
\$b chown -R $uid:$uid user
cd /
\$b ip link set lo up
\$b ip link add other type dummy
\$b sysctl -q -w kernel.printk='1 4 1 7' kernel.panic=-1
\$b cp /second /command /bin/busybox /new/run/vm/
\$b umount /sys
\$b umount -l /dev
\$b umount -l /proc
exec \$b switch_root /new /run/vm/busybox sh /run/vm/second
INIT
cat >"$top/second" <<SECOND
exec >/dev/ttyS0 2>&1
(
	echo 0 >/sys/fs/cgroup/user/tests/cgroup.procs
	exec /usr/bin/setpriv --reuid=$uid --regid=$uid --clear-groups --inh-caps=-all \\
		/usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/home/user TERM=dumb \\
		LANG=C.UTF-8 XDG_RUNTIME_DIR=/run/user/$uid /bin/sh /run/vm/command </dev/null >/dev/ttyS1 2>&1
)
echo "exit-code \$?" >/dev/ttyS1
/run/vm/busybox reboot -f
SECOND
{
	printf 'cd %s\n' "$(quoted "$PWD")"
	printf 'exec %s\n' "$(quoted "$@")"
} >"$top/command"
chmod 755 "$top/init"
(cd "$top" && find . | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"

# ---- the machine --------------------------------------------------------------------------------

truncate -s 4G "$work/disk"
mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 "$work/disk"
timeout -k 5 "$seconds" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=256 -cpu max -smp 2 -m 2048 \
	-nodefaults -no-user-config -display none -no-reboot \
	-kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initrd" \
	-append 'console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check mitigations=off nokaslr' \
	-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
	-device virtio-9p-pci,fsdev=host,mount_tag=host \
	-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
	-serial "file:$work/console" -serial "file:$work/out" </dev/null 2>"$work/error" ||
	{ echo "boot.sh: qemu exit $?"; cat "$work/error"; }
tr -d '\r' <"$work/out" | sed '/^exit-code /d'
code=$(tr -d '\r' <"$work/out" | sed -n 's/^exit-code //p' | tail -n 1)
if [ -z "$code" ]; then
	echo 'boot.sh: the machine did not come to an end; its console:'
	tail -n 25 "$work/console"
	exit 125
fi
exit "$code"
