#include "plan/layout.h"
#include "base/mem.h"
#include "base/path.h"

/*
 * Not all of /nix: its daemon listens there, and a read-only mount stops no connect(2). Of
 * /var/lib what packages install or compile for their programs in /usr, such as the formats of
 * TeX, and no state of a service. Of /var/cache only indexes of what is in /usr. Homebrew has
 * databases and sockets of services in its own var, and their passwords in its etc.
 */
const char *const layout_system[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/opt",
	"/nix/store",
	"/nix/var/nix/profiles",
	"/gnu",
	"/home/linuxbrew/.linuxbrew/Cellar",
	"/home/linuxbrew/.linuxbrew/Frameworks",
	"/home/linuxbrew/.linuxbrew/Homebrew",
	"/home/linuxbrew/.linuxbrew/bin",
	"/home/linuxbrew/.linuxbrew/etc/ca-certificates",
	"/home/linuxbrew/.linuxbrew/etc/fonts",
	"/home/linuxbrew/.linuxbrew/etc/openssl@3/cert.pem",
	"/home/linuxbrew/.linuxbrew/etc/openssl@3/certs",
	"/home/linuxbrew/.linuxbrew/etc/openssl@3/openssl.cnf",
	"/home/linuxbrew/.linuxbrew/include",
	"/home/linuxbrew/.linuxbrew/lib",
	"/home/linuxbrew/.linuxbrew/opt",
	"/home/linuxbrew/.linuxbrew/sbin",
	"/home/linuxbrew/.linuxbrew/share",
	"/var/cache/fontconfig",
	"/var/cache/man",
	"/var/lib/aspell",
	"/var/lib/dpkg",
	"/var/lib/gems",
	"/var/lib/ghc",
	"/var/lib/ghostscript",
	"/var/lib/texmf",
};
const size_t layout_system_n = ARRAY_SIZE(layout_system);

bool layout_in_system(const char *path)
{
	for (size_t i = 0; i < layout_system_n; i++)
		if (path_within(path, layout_system[i]))
			return true;
	return false;
}

/*
 * /etc is picked, not shared: machines keep secrets there (ssl/private, maven's passwords) and
 * the names of internal hosts. An entry is in the list if a package installs it beside its
 * programs in /usr, if the programs fail or act differently without it, and if every user may
 * read it because it is no place for passwords or keys. The plan makes passwd, group, hostname
 * and nsswitch.conf, and hosts and resolv.conf unless the box shares the host's network.
 */
const struct layout_etc layout_etc[] = {
	{ "ImageMagick-6", false, false },
	{ "ImageMagick-7", false, false },
	{ "OpenCL", false, false },
	{ "R", false, false },
	{ "X11/rgb.txt", false, false },
	{ "alternatives", false, false },
	{ "bash.bashrc", true, false },
	{ "chromium", false, false },
	{ "chromium.d", false, false },
	{ "crypto-policies", false, false },
	{ "debian_version", true, false },
	{ "dotnet", false, false },
	{ "dpkg/origins", false, false },
	{ "firefox", false, false },
	{ "firefox-esr", false, false },
	{ "fish", false, false },
	{ "fonts", false, false },
	{ "fpc-3.2.2.cfg", true, false },
	{ "fpc.cfg", true, false },
	{ "ghostscript", false, false },
	{ "gnucobol", false, false },
	{ "groff", false, false },
	{ "inputrc", true, false },
	{ "java", false, false },
	{ "java-11-openjdk", false, false },
	{ "java-17-openjdk", false, false },
	{ "java-21-openjdk", false, false },
	{ "java-25-openjdk", false, false },
	{ "java-8-openjdk", false, false },
	{ "java-openjdk", false, false },
	{ "java11-openjdk", false, false },
	{ "java17-openjdk", false, false },
	{ "java21-openjdk", false, false },
	{ "java25-openjdk", false, false },
	{ "ld-musl-aarch64.path", true, false },
	{ "ld-musl-x86_64.path", true, false },
	{ "ld.so.cache", false, false },
	{ "ld.so.conf", true, false },
	{ "ld.so.conf.d", false, false },
	{ "libreoffice", false, false },
	{ "locale.alias", true, false },
	{ "locale.conf", true, false },
	{ "localtime", true, false },
	{ "lsb-release", true, false },
	{ "man_db.conf", true, false },
	{ "manpath.config", true, false },
	{ "maven/logging", false, false },
	{ "maven/m2.conf", true, false },
	{ "mime.types", false, false },
	{ "mono", false, false },
	{ "nanorc", false, false },
	{ "ocamlfind.conf", true, false },
	{ "octave.conf", true, false },
	{ "odbcinst.ini", true, false },
	{ "openmpi", false, false },
	{ "os-release", true, false },
	{ "papersize", true, false },
	{ "php", false, false },
	{ "pki/ca-trust", false, false },
	{ "pki/tls/cert.pem", false, false },
	{ "pki/tls/certs", false, false },
	{ "pki/tls/openssl.cnf", false, false },
	{ "profile", true, false },
	{ "protocols", true, false },
	{ "python3.10/sitecustomize.py", true, false },
	{ "python3.11/sitecustomize.py", true, false },
	{ "python3.12/sitecustomize.py", true, false },
	{ "python3.13/sitecustomize.py", true, false },
	{ "python3.14/sitecustomize.py", true, false },
	{ "screenrc", true, false },
	{ "services", false, false },
	{ "shells", true, false },
	{ "ssl/certs", false, false },
	{ "ssl/openssl.cnf", false, false },
	{ "static", false, false }, /* NixOS: what most of /etc links to */
	{ "texmf", false, false },
	{ "timezone", true, false },
	{ "tmux.conf", true, false },
	{ "vim", false, false },
	{ "vimrc", true, false },
	{ "xml", false, false },
	{ "zsh", false, false },
	{ "zshenv", true, false },
	{ "zshrc", true, false },
	{ "gai.conf", true, true },
	{ "host.conf", true, true },
	{ "hosts", true, true },
	{ "resolv.conf", true, true },
};
const size_t layout_etc_n = ARRAY_SIZE(layout_etc);

/*
 * Only the part of a toolchain that holds programs: ~/.cargo itself also holds the
 * registry token, ~/.npm the cache of private packages.
 */
const struct layout_toolchain layout_toolchains[] = {
	{ ".asdf", NULL },
	{ ".bun/bin", NULL },
	{ ".cabal/bin", NULL },
	{ ".cargo/bin", NULL },
	{ ".composer/vendor", NULL },
	{ ".conda/envs", NULL },
	{ ".config/composer/vendor", NULL },
	{ ".config/yarn/global", NULL },
	{ ".deno/bin", NULL },
	{ ".dotnet", NULL },
	{ ".elan", NULL },
	{ ".fnm", NULL },
	{ ".foundry/bin", NULL },
	{ ".gem/ruby", NULL },
	{ ".ghcup", NULL },
	{ ".goenv", NULL },
	{ ".gvm", NULL },
	{ ".jenv", NULL },
	{ ".juliaup", NULL },
	{ ".local/bin", NULL },
	{ ".local/lib", ".local/bin" },
	{ ".local/share/fnm", NULL },
	{ ".local/share/gem/ruby", NULL },
	{ ".local/share/mise", NULL },
	{ ".local/share/pnpm", NULL },
	{ ".local/share/swiftly", NULL },
	{ ".local/share/uv/python", ".local/bin" },
	{ ".local/share/uv/tools", ".local/bin" },
	{ ".luarocks/bin", NULL },
	{ ".luarocks/lib", ".luarocks/bin" },
	{ ".luarocks/share", ".luarocks/bin" },
	{ ".nimble/bin", NULL },
	{ ".nimble/pkgs2", ".nimble/bin" },
	{ ".nodebrew", NULL },
	{ ".nodenv", NULL },
	{ ".npm-global", NULL },
	{ ".npm-packages", NULL },
	{ ".nvm", NULL },
	{ ".opam", NULL },
	{ ".phpenv", NULL },
	{ ".pixi/bin", NULL },
	{ ".pixi/envs", ".pixi/bin" },
	{ ".plenv", NULL },
	{ ".proto", NULL },
	{ ".pub-cache/bin", NULL },
	{ ".pub-cache/hosted", ".pub-cache/bin" },
	{ ".pyenv", NULL },
	{ ".rbenv", NULL },
	{ ".rustup", ".cargo/bin" },
	{ ".rvm", NULL },
	{ ".sdkman/candidates", NULL },
	{ ".swiftly", NULL },
	{ ".tfenv", NULL },
	{ ".volta", NULL },
	{ ".yarn/bin", NULL },
	{ "anaconda3", NULL },
	{ "bin", NULL },
	{ "flutter", NULL },
	{ "go/bin", NULL },
	{ "mambaforge", NULL },
	{ "micromamba", NULL },
	{ "miniconda3", NULL },
	{ "miniforge3", NULL },
	{ "n", NULL },
	{ "sdk", NULL },
};
const size_t layout_toolchains_n = ARRAY_SIZE(layout_toolchains);

/*
 * Where a tool keeps secrets among its programs. conda has variables of an environment in
 * conda-meta/state and, as its manual once said, in env_vars.sh; .NET has private keys; npm has
 * tokens in the npmrc of its prefix, and pip passwords in a pip.conf.
 */
#define SECRETS_OF_CONDA(prefix)                                                  \
	prefix "/conda-meta/state", prefix "/etc/conda/activate.d/env_vars.sh",   \
		prefix "/etc/conda/deactivate.d/env_vars.sh", prefix "/pip.conf", \
		prefix "/etc/npmrc"
#define SECRETS_OF_CONDAS(root) SECRETS_OF_CONDA(root), SECRETS_OF_CONDA(root "/envs/*")

const char *const layout_secrets[] = {
	".asdf/installs/nodejs/*/etc/npmrc",
	".asdf/installs/python/*/pip.conf",
	".asdf/installs/rust/*/credentials",
	".asdf/installs/rust/*/credentials.toml",
	SECRETS_OF_CONDA(".conda/envs/*"),
	".dotnet/corefx",
	".fnm/node-versions/*/installation/etc/npmrc",
	".local/share/fnm/node-versions/*/installation/etc/npmrc",
	".local/share/mise/installs/node/*/etc/npmrc",
	".local/share/mise/installs/python/*/pip.conf",
	".nodebrew/node/*/etc/npmrc",
	".nodenv/versions/*/etc/npmrc",
	".npm-global/etc/npmrc",
	".npm-packages/etc/npmrc",
	".nvm/versions/node/*/etc/npmrc",
	SECRETS_OF_CONDA(".pixi/envs/*"),
	".pyenv/versions/*/pip.conf",
	".pyenv/versions/*/envs/*/pip.conf",
	".volta/tools/image/node/*/etc/npmrc",
	SECRETS_OF_CONDAS("anaconda3"),
	SECRETS_OF_CONDAS("mambaforge"),
	SECRETS_OF_CONDAS("micromamba"),
	SECRETS_OF_CONDAS("miniconda3"),
	SECRETS_OF_CONDAS("miniforge3"),
	"n/etc/npmrc",
};
const size_t layout_secrets_n = ARRAY_SIZE(layout_secrets);

const char *const layout_hide[] = {
	"**/.env",
	"**/.env.*",
	"!**/.env.example",
};
const size_t layout_hide_n = ARRAY_SIZE(layout_hide);

const char *const layout_env[] = {
	"TERM",
	"LANG",
	"LANGUAGE",
	"LC_*",
	"TZ",
	"COLORTERM",
	"NO_COLOR",
	"EDITOR",
};
const size_t layout_env_n = ARRAY_SIZE(layout_env);

/*
 * If root starts carrel, uid 1000 in the box is uid 0 to the kernel, and some files in proc
 * check only that (core_pattern runs a program on the host). For other users the kernel refuses
 * already, and only a proc without anything on top lets a box inside the box mount its own.
 */
const struct layout_proc layout_proc_root[] = {
	{ "/proc/acpi", true, false },
	{ "/proc/asound", true, false },
	{ "/proc/bus", true, false },
	{ "/proc/driver", true, false },
	{ "/proc/dynamic_debug", true, false },
	{ "/proc/fs", true, false },
	{ "/proc/irq", true, false },
	{ "/proc/kcore", false, true },
	{ "/proc/kmsg", false, true },
	{ "/proc/kpagecgroup", false, true },
	{ "/proc/kpagecount", false, true },
	{ "/proc/kpageflags", false, true },
	{ "/proc/latency_stats", false, true },
	{ "/proc/mtrr", false, true },
	{ "/proc/sched_debug", false, true },
	{ "/proc/scsi", true, false },
	{ "/proc/sys", true, false },
	{ "/proc/sysrq-trigger", false, false },
	{ "/proc/timer_list", false, true },
};
const size_t layout_proc_root_n = ARRAY_SIZE(layout_proc_root);
