"""The mutants: what is broken, and which tests must notice.

Grouped by what guards the wall. A row's text must occur once in its file; a row that does not
apply any more is reported, so that the table follows the code.
"""

from collections import namedtuple

Mutant = namedtuple("Mutant", "name file old new tests")
MUTANTS = []

FILES = "tests/escape/test_files.py::"
PROCESSES = "tests/escape/test_processes.py::"
KERNEL = "tests/escape/test_kernel.py::"
ROUNDABOUT = "tests/escape/test_roundabout.py::"
GIT_DIRS = "tests/escape/test_git_dirs.py::"
OBEYED = "tests/escape/test_obeyed.py::"
GUARDS = "tests/escape/test_guards.py::"
SESSIONS = "tests/cli/test_sessions.py::"


def mutant(name, file, old, new, *tests):
    MUTANTS.append(Mutant(name, f"src/{file}", old, new, tests))


# ---- system calls -------------------------------------------------------------------------

POLICY = "box/native/seccomp-policy.h"


def call(name, old, new):
    mutant(f"seccomp: {name}", POLICY, old, new, "unit/seccomp")


call("fchmodat2 may set set-uid", 'GROUP_RULE("fchmodat fchmodat2", RULE_CHMODAT)',
     'GROUP_RULE("fchmodat", RULE_CHMODAT), GROUP("fchmodat2")')
call("fchmod may set set-uid", 'GROUP_RULE("chmod fchmod", RULE_CHMOD)',
     'GROUP_RULE("chmod", RULE_CHMOD), GROUP("fchmod")')
call("chmod: another bit", "IF_ANY_BIT(1, 04000,", "IF_ANY_BIT(1, 02000,")
call("fchmodat: another argument", "IF_ANY_BIT(2, 04000,", "IF_ANY_BIT(1, 04000,")
call("btrfs snapshot v2 by another number", "0x50009417u", "0x50009416u")
call("btrfs snapshot", "IF_EQUAL(1, SNAP_CREATE, VERDICT_ERRNO(EPERM)),", "")
call("btrfs subvolume v2", "IF_EQUAL(1, SUBVOL_CREATE_V2, VERDICT_ERRNO(EPERM)),", "")
call("blocks moved between files of ext4", "IF_EQUAL(1, EXT4_MOVE_EXT, VERDICT_ERRNO(EPERM)),", "")
call("blocks moved between files of xfs", "0xc0c0586du", "0xc0c0586eu")
call("UDP-Lite", "IF_EQUAL(2, IPPROTO_UDP, VERDICT_ALLOW),",
     "IF_EQUAL(2, IPPROTO_UDP, VERDICT_ALLOW), IF_EQUAL(2, 136, VERDICT_ALLOW),")
call("DCCP", "IF_EQUAL(2, IPPROTO_TCP, VERDICT_ALLOW),",
     "IF_EQUAL(2, IPPROTO_TCP, VERDICT_ALLOW), IF_EQUAL(2, 33, VERDICT_ALLOW),")
call("clone with a cgroup namespace", "CLONE_NEWNS | CLONE_NEWCGROUP |", "CLONE_NEWNS |")
call("clone with a user namespace", "CLONE_NEWUSER | CLONE_NEWPID |", "CLONE_NEWPID |")
call("unshare by its high word", "IF_HIGH_WORD(0, VERDICT_ERRNO(EPERM)),", "")
call("unshare with a new time namespace", "CLONE_SYSVSEM))", "CLONE_SYSVSEM | 0x80))")
call("TIOCCONS", "IF_EQUAL(1, TIOCCONS, VERDICT_ERRNO(EPERM)),", "")
call("TIOCSTI", "IF_EQUAL(1, TIOCSTI, VERDICT_ERRNO(EPERM)),", "")
call("F_SETLEASE", "IF_EQUAL(1, FCNTL_LINUX, VERDICT_ERRNO(EINVAL)),", "")
call("F_NOTIFY by another number", "(FCNTL_LINUX + 2)", "(FCNTL_LINUX + 3)")
call("core limit by prlimit, high pointer", "IF_HIGH_WORD(2, VERDICT_ERRNO(0)),", "")
call("core limit by prlimit", "IF_ANY_BIT(2, UINT32_MAX, VERDICT_ERRNO(0)),", "")
call("core limit by setrlimit", "IF_EQUAL(0, RLIMIT_CORE, VERDICT_ERRNO(0)),",
     "IF_EQUAL(0, 99, VERDICT_ERRNO(0)),")
call("AF_VSOCK", "IF_EQUAL(0, AF_UNIX, VERDICT_ALLOW),",
     "IF_EQUAL(0, AF_UNIX, VERDICT_ALLOW), IF_EQUAL(0, 40, VERDICT_ALLOW),")
call("SOCK_PACKET by its low bits", "SOCK_TYPE_BITS 0xfu", "SOCK_TYPE_BITS 0x3u")
call("netlink of netfilter", "IF_EQUAL(2, NETLINK_ROUTE, VERDICT_ALLOW),",
     "IF_EQUAL(2, NETLINK_ROUTE, VERDICT_ALLOW), IF_EQUAL(2, 12, VERDICT_ALLOW),")
call("clone3", '{ "clone3", VERDICT_ERRNO(ENOSYS),', '{ "clone3", VERDICT_ALLOW,')
call("setns", '{ "setns", VERDICT_ERRNO(EPERM),', '{ "setns", VERDICT_ALLOW,')
call("READ_IMPLIES_EXEC", "IF_EQUAL(0, UNAME26, VERDICT_ALLOW),",
     "IF_EQUAL(0, UNAME26, VERDICT_ALLOW), IF_EQUAL(0, 0x400000, VERDICT_ALLOW),")
call("io_uring", 'GROUP("uretprobe uprobe")', 'GROUP("uretprobe uprobe io_uring_setup")')
mutant("seccomp: x32 calls", "box/native/seccomp-gen.c", "add_interval(p, X32_BIT, VERDICT_KILL)",
       "add_interval(p, X32_BIT, VERDICT_DEFAULT)", "unit/seccomp")
mutant("seccomp: another architecture", "box/native/seccomp-gen.c",
       'verdict_label(p, VERDICT_KILL), "%s?"', 'verdict_label(p, VERDICT_ALLOW), "%s?"',
       "unit/seccomp")

# ---- who the box is -----------------------------------------------------------------------

IDENTITY = PROCESSES + "test_no_capabilities_and_no_new_privileges"
mutant("root's groups are kept", "box/native/engine.c", "if (frame->host_uid == 0 && setgroups",
       "if (frame->host_uid == 1 && setgroups", GUARDS + "test_groups_of_root_are_dropped")
mutant("bounding set", "box/native/caps.c", "for (unsigned long cap = 0;",
       "for (unsigned long cap = 64;", IDENTITY)
mutant("capabilities", "box/native/caps.c",
       "syscall(SYS_capset, &header, none) < 0)", "header.pid < 0 || none->effective)",
       IDENTITY)
mutant("no_new_privs", "box/native/caps.c", "if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)",
       "if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) < 0)", IDENTITY)
mutant("init is dumpable", "box/native/caps.c", "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)",
       "prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)", PROCESSES + "test_init_cannot_be_looked_into")
mutant("setgroups is allowed", "box/native/userns.c",
       'put_map(&later, "/proc/self/setgroups", "deny", f) < 0 ||', "", IDENTITY)
mutant("init outlives the supervisor", "box/native/engine.c",
       "prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);", "",
       "tests/fault/test_fault.py::test_killed_at_step[landlock-supervisor]")
mutant("inherited descriptors", "box/native/fds.c", "fd_close_range(FD_FIRST_FREE, ~0U)",
       "fd_close_range(FD_FIRST_FREE + 8, ~0U)",
       PROCESSES + "test_descriptors_at_the_first_instruction")
mutant("standard streams of the host", "box/native/fds.c", "io->terminal ? -1 : io->in,",
       "io->terminal ? -1 : 0,",
       PROCESSES + "test_descriptors_seen_from_the_host",
       PROCESSES + "test_standard_input_is_a_directory_or_socket")
mutant("environment of the host", "plan/box-env.c", "if ((*e)[n] && passes(*e, n))", "if ((*e)[n])",
       "unit/plan", PROCESSES + "test_environment_of_the_host_stays_out")
mutant("PATH into the workspace", "plan/box-env.c",
       "!plan_shows(p, entry) ||\n\t\t\tpath_within(entry, p->workspace))",
       "!plan_shows(p, entry))", "unit/plan",
       PROCESSES + "test_path_of_the_host_runs_no_planted_helper")
mutant("what outlives the command", "box/native/init.c", "\t\tkill(-1, SIGKILL);\n\t\tpid =",
       "\t\tpid =", PROCESSES + "test_daemons_do_not_outlive_the_command")

# ---- limits -------------------------------------------------------------------------------

mutant("core files of 0 bytes", "box/native/rlimits.c", 'limit(RLIMIT_CORE, 1, "core files", f)',
       'limit(RLIMIT_CORE, 0, "core files", f)',
       ROUNDABOUT + "test_core_limit_stays_at_one_byte")
COUNTED = "tests/escape/test_counters.py::test_limits_of_what_is_counted"
mutant("pending signals of the user", "box/native/rlimits.c",
       'halve(RLIMIT_SIGPENDING, "signals on their way", f)', "0", COUNTED)
mutant("open files of the user", "box/native/rlimits.c",
       "const struct rlimit r = { files, files };", "const struct rlimit r = { files, files * 16 };",
       COUNTED)
mutant("inotify instances of the user", "box/native/mount.c",
       '"sys/user/max_inotify_instances", "64"', '"sys/user/max_inotify_instances", "100000"',
       "tests/escape/test_counters.py::test_a_box_leaves_some")
mutant("terminals of the machine", "box/native/mount.c", '{ "max", "256" },', "",
       "tests/escape/test_counters.py::test_terminals_of_the_machine")
mutant("user namespaces", "box/native/mount.c", '"sys/user/max_user_namespaces", "0"',
       '"sys/user/max_user_namespaces", "10"', KERNEL + "test_user_namespaces_are_used_up")

# ---- mounts -------------------------------------------------------------------------------

MOUNTS = GUARDS + "test_every_mount_of_a_box"
SWAPPED = GUARDS + "test_swapped_during_the_start"
mutant("links on the way to a source", "box/native/mount.c",
       "NO_LINKS = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,",
       "NO_LINKS = RESOLVE_NO_MAGICLINKS,", SWAPPED)
mutant("links in the directory of a source", "box/native/mount.c",
       "int dir = enter_dir(&t->source, AT_FDCWD, path, NO_LINKS, &name);",
       "int dir = enter_dir(&t->source, AT_FDCWD, path, 0, &name);", SWAPPED)
mutant("a source that is a link", "box/native/mount.c",
       "const unsigned int how = flags | AT_SYMLINK_NOFOLLOW |",
       "const unsigned int how = flags |", SWAPPED)
mutant("links on the way to a target", "box/native/mount.c",
       "NO_LINKS_OUT = NO_LINKS | RESOLVE_IN_ROOT,", "NO_LINKS_OUT = RESOLVE_IN_ROOT,",
       GUARDS + "test_target_swapped_during_the_start")
mutant("later mounts of the host appear", "box/native/mount.c",
       ".set = attr, .propagation = MS_PRIVATE };", ".set = attr };",
       GUARDS + "test_later_mounts_of_the_host_do_not_appear")
mutant("set-uid programs of mounts", "box/native/mount.c",
       "uint64_t attr = MOUNT_ATTR_NOSUID |", "uint64_t attr =", MOUNTS)
mutant("devices of mounts", "box/native/mount.c",
       "(place->device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV) |", "", MOUNTS)
mutant("read-only mounts", "box/native/mount.c",
       "(place->rw ? 0 : MOUNT_ATTR_RDONLY);\n\tint mount = clone_source",
       "0;\n\tint mount = clone_source", MOUNTS)
mutant("masks can be written", "box/native/mount.c",
       "t->masks[mask] = true;\n"
       "\tmount = clone_at(t, t->root, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);",
       "t->masks[mask] = true;\n\tmount = clone_at(t, t->root, name, 0);", MOUNTS)
mutant("git's config link can be replaced", "box/native/mount.c",
       "str_visible(place->target));\n"
       "\tmount = clone_at(t, t->root, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);",
       "str_visible(place->target));\n\tmount = clone_at(t, t->root, name, 0);", MOUNTS)
mutant("the root takes set-uid and devices", "box/native/mount.c",
       '"tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, f)', '"tmpfs", options, 0, f)',
       MOUNTS)
mutant("proc takes programs", "box/native/mount.c",
       "MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, f));", "0, f));", MOUNTS)
mutant("devpts takes programs", "box/native/mount.c",
       '"devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,', '"devpts", options, 0,',
       MOUNTS)
mutant("overlays take set-uid and devices", "box/native/overlay.c",
       "FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)", "FSMOUNT_CLOEXEC, 0)",
       SESSIONS + "test_overlays_take_no_devices_and_no_set_uid_programs")
mutant("seals can be written", "box/native/mount.c",
       'clone_at(t, target, "", place->rw ? 0 : MOUNT_ATTR_RDONLY)',
       'clone_at(t, target, "", 0)', FILES + "test_kernel_settings_when_root_starts_the_box")
mutant("masks keep their names", "box/native/mount.c",
       "if (t->masks[mask] && unlinkat(", "if (t->masks[mask] && mask > MASKS && unlinkat(",
       MOUNTS)
mutant("the host's tree stays mounted", "box/native/mount.c",
       'if (umount2(".", MNT_DETACH) < 0)', "if (n->root < 0)", MOUNTS)
mutant("no pins", "plan/rules.c", "if (kind == PLACE_PIN && !bind->rw)",
       "if (kind == PLACE_PIN)", FILES + "test_protected_name_is_unchanged")
mutant("hiding is the weakest", "plan/rules.c", "kind == PLACE_HIDE       ? 4",
       "kind == PLACE_HIDE       ? 0", "unit/plan", GUARDS + "test_hidden_and_protected")
mutant("hidden files of a declared mount", "plan/rules.c",
       "if (bind.declared && check_bind", "if (bind.moved && bind.device && check_bind",
       "tests/cli/test_agent_attacks.py::test_a_manifest_mounts_nothing_bare_that_is_guarded")
mutant("protected names through another mount", "plan/rules.c",
       "rule->kind == RULE_PROTECT && rule->asked : bind->rw;",
       'rule->kind == RULE_PROTECT && rule->asked : bind->rw && !strcmp(bind->why, "workspace");',
       FILES + "test_protected_through_another_mount")
mutant("kernel settings for root", "plan/layout.c", '\t{ "/proc/sys", true, false },\n', "",
       FILES + "test_kernel_settings_when_root_starts_the_box")
mutant("sysrq for root", "plan/layout.c", '\t{ "/proc/sysrq-trigger", false, false },\n', "",
       GUARDS + "test_files_of_the_kernel_when_root_starts_the_box")
mutant("kcore for root", "plan/layout.c", '\t{ "/proc/kcore", false, true },\n', "",
       GUARDS + "test_files_of_the_kernel_when_root_starts_the_box")
mutant("names of keys", "plan/places.c", '.target = "/proc/keys",',
       '.target = "/proc/key-users",', PROCESSES + "test_session_keyring_of_the_host")
mutant("modes of device nodes", "plan/places.c", ".device = true,", ".device = true, .rw = true,",
       FILES + "test_device_nodes_of_the_host_keep_their_modes")

# ---- Landlock and the network -------------------------------------------------------------

mutant("landlock: not enforced", "box/native/landlock.c",
       "if (syscall(SYS_landlock_restrict_self, n->ruleset, 0) < 0)", "if (n->ruleset < 0)",
       GUARDS + "test_root_of_the_box_is_not_written")
mutant("landlock: all of / can be written", "box/native/landlock.c",
       'allow(&r, "/", rights & ACCESS_READ, f)', 'allow(&r, "/", rights, f)',
       GUARDS + "test_root_of_the_box_is_not_written")
mutant("landlock: abstract sockets", "box/native/landlock.c",
       "SCOPE_ABSTRACT | SCOPE_SIGNAL : 0", "SCOPE_SIGNAL : 0",
       "tests/escape/test_network.py::test_listener_on_the_host_is_not_reached")
mutant("network of the host", "box/native/net.c", "if (setns(net, CLONE_NEWNET) < 0)",
       "if (net < 0)", "tests/escape/test_network.py::test_there_is_no_route")

# ---- stubs --------------------------------------------------------------------------------

mutant("stub: any file of that mode", "box/stub.c",
       'return n == 0 || (n == 2 && !memcmp(text, ".\\n", 2));', "return n >= 0;",
       "tests/escape/test_host.py::test_planted_file_dressed_as_a_stand_in", "unit/stub")
mutant("stub: another user's", "box/stub.c", "if (!is_ours(st->st_uid))",
       "if (!is_ours(st->st_uid) && st->st_uid == 1)", "unit/stub")
mutant("stub: removed beside another box", "box/stub.c", "else if (alone)", "else",
       FILES + "test_absent_name_while_another_box_ends")
mutant("stub: through a link", "box/stub.c",
       "d.fd = fd_open2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC,\n"
       "\t\tRESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);",
       "d.fd = fd_open2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);", "unit/stub")
mutant("stub: replaced ones are not reported", "box/stub.c",
       "stub->replaced = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&\n"
       "\t\t\t\t!is_dir_stub(&st) && !stub_seen(&st, fd, name);",
       "stub->replaced = false;", "tests/escape/test_host.py::test_absent_name_replaced_on_the_host")

# ---- carrel's own state -------------------------------------------------------------------

mutant("registry: another's lock is removed", "state/registry.c",
       "if (dir >= 0 && tree_is_named(dir, file.text, claim->lock))", "if (dir >= 0)",
       "unit/registry")
mutant("registry: a lock whose file is gone", "state/registry.c",
       "if (tree_is_named(dir, file.text, fd)) {", "if (fd >= 0) {", "unit/registry")
mutant("registry: somebody else's directory", "state/registry.c",
       "if (st.st_uid != geteuid() || st.st_mode & 022)", "if (st.st_uid != geteuid())",
       "unit/control", "unit/registry")
mutant("records: hard links", "state/boxes.c", "st.st_nlink != 1 ||", "", "unit/journal")
mutant("records: other modes", "state/boxes.c", "st.st_mode != (S_IFREG | 0600)",
       "!S_ISREG(st.st_mode)", "unit/journal")
mutant("records: no second look under the lock", "state/boxes.c", "if (boxes_is_old(&now) && ",
       "if (", "unit/journal")
mutant("records: others may write", "state/boxes.c", "if (st.st_mode & 022) {", "if (!st.st_mode) {",
       "unit/journal")
mutant("gc: no second look under the lock", "state/instances.c",
       "if (rc == 0 && vanished && instance_root(i->root) != ROOT_GONE) {",
       "if (rc == 0 && !vanished && !i->id) {",
       "unit/instances")
mutant("control: another user", "supervise/control.c",
       "peer.uid == geteuid() && is_in_our_namespace(peer.pid)", "is_in_our_namespace(peer.pid)",
       GUARDS + "test_control_socket_and_another_user")
mutant("control: another user namespace", "supervise/control.c",
       "peer.uid == geteuid() && is_in_our_namespace(peer.pid)", "peer.uid == geteuid()",
       "unit/control")
mutant("control: a socket of another user", "supervise/control-ask.c",
       "SO_PEERCRED, &peer, &size) == 0 &&\n\t\tpeer.uid == geteuid();",
       "SO_PEERCRED, &peer, &size) == 0;", GUARDS + "test_another_users_socket_is_not_asked")
mutant("own configuration through a mount", "host/survey.c", "if (m->rw && !m->sure && real &&",
       "if (m->rw && !m->sure && !real &&", OBEYED + "test_own_configuration_as_a_mount")
mutant("workspace that holds carrel's own", "host/survey.c",
       "(config && path_within(workspace, config)) || meets)", "meets)",
       GUARDS + "test_workspace_is_not_carrels_own")
mutant("sockets in a mount", "host/survey.c",
       'survey_hide(h, root, path_below(runtime, root), "carrel\'s own");', "",
       "tests/cli/test_control.py::test_no_box_has_the_sockets")
mutant("trust: not asked for", "run/agent.c", "ret->trust.is != TRUST_GIVEN)",
       "ret->trust.is == TRUST_CHANGED)", SESSIONS + "test_command_of_a_project_that_is_not_approved")
mutant("trust: values below own settings", "manifest/compose.c",
       "agent.project_says = all && m->project && has_origin(all, m->project);",
       "agent.project_says = all && m->project && all->origin == m->project;",
       SESSIONS + "test_command_of_a_project_that_is_not_approved")
mutant("trust: any content", "manifest/trust.c", "!strcasecmp(record.hash, hash)) ?",
       "record.hash) ?", "unit/trust")
mutant("trust: a record of another path", "manifest/trust.c",
       "if (r.path && strcmp(r.path, str_visible(path)) != 0)", "if (r.path && !*r.path)",
       "unit/trust")
mutant("trust: others may write the record", "manifest/trust.c",
       "if (st.st_uid != geteuid() || (st.st_mode & 022))", "if (st.st_uid != geteuid())",
       "unit/trust")
mutant("walk cache: changed in the same moment", "host/walk-cache.c",
       "return st->st_ctim.tv_sec < c->begun.tv_sec - SLACK;",
       "return st->st_ctim.tv_sec < c->begun.tv_sec + SLACK;", "unit/walk")
mutant("walk cache: ctime", "host/walk-cache.c", "st->st_ctim.tv_sec == d->ctime &&", "",
       "unit/walk")

# ---- git ----------------------------------------------------------------------------------

mutant("git: a project dressed up as X.git", "host/survey-git.c",
       'git_exists(dir, "objects") &&\n\t\t!may_exist(dir, ".git");', 'git_exists(dir, "objects");',
       ROUNDABOUT + "test_project_dressed_up_as_a_repository_is_not_mounted")
mutant("git: a module dressed up", "host/survey-git.c",
       'strstr(admin, "/.git/modules/") && !may_exist(admin, ".git") ? admin',
       'strstr(admin, "/.git/modules/") ? admin',
       ROUNDABOUT + "test_project_dressed_up_as_a_repository_is_not_mounted")
mutant("git: need not point back", "host/survey-git.c",
       "if (common && git_points_back(admin, workspace)) {", "if (common) {",
       GUARDS + "test_worktree_that_is_not_pointed_back_to")
mutant("git: core.worktree of another", "host/survey-git.c",
       "if (!dir || strcmp(dir, workspace) || !git_exists", "if (!dir || !git_exists",
       GUARDS + "test_worktree_that_is_not_pointed_back_to")
mutant("git: identity of one dressed up", "state/root.c",
       'if (git_exists(c->common, ".git"))', 'if (git_exists(c->common, ".git.git"))',
       "unit/root", "tests/cli/test_root.py::test_random_layouts")
mutant("git: planted rebase-apply", "git/git-walk.c",
       '\t{ IN_GIT, "rebase-apply", IN_TODO },\n', "",
       ROUNDABOUT + "test_rebase_in_progress_is_reported")
mutant("links of a box that lead mounts", "host/survey.c",
       "return rc < 0 ? rc : survey_leads(r, h, f);", "return rc;",
       ROUNDABOUT + "test_a_link_of_the_box_does_not_lead_a_mount",
       ROUNDABOUT + "test_a_link_of_the_box_does_not_lead_its_restart")
mutant("links of a box that lead the workspace", "host/survey-trail.c",
       'check_lead(h, "workspace", &h->workspace, f);', "0;",
       ROUNDABOUT + "test_a_link_of_the_box_does_not_lead_the_workspace")
mutant("git: planted sequencer", "git/git-walk.c", '\t{ IN_GIT, "sequencer", IN_TODO },\n', "",
       ROUNDABOUT + "test_rebase_in_progress_is_reported")
mutant("git: planted alternates", "git/git-walk.c",
       '\t{ IN_OBJECTS_INFO, "alternates", GIT_ALTERNATE },\n', "",
       ROUNDABOUT + "test_other_objects_are_reported")
mutant("git: links in a bare repository below", "git/git-walk.c", '{ "gc.", ', "{ ",
       GIT_DIRS + "test_links_in_a_bare_repository_below")
mutant("git: others may write there", "host/git-dirs.c", "if (more && fchmod(",
       "if (0 && fchmod(", GIT_DIRS + "test_other_users_gain_no_way_in")
mutant("git: submodules of a linked worktree", "host/survey-git.c",
       'rc = protect_modules(h, root, path_join(admin, "modules"), depth, f);', "",
       GIT_DIRS + "test_submodule_of_a_linked_worktree")
mutant("git: planted links stay", "host/git-dirs.c", "if (unlinkat(e->dir, e->name, 0) == 0)",
       "if (e->dir >= 0)", GIT_DIRS + "test_git_on_the_host_writes_through_no_link")
mutant("git: known by inode alone", "run/found.c",
       "if (!strcmp(at->rel, e->rel))", "if (at->rel)",
       GIT_DIRS + "test_known_directory_under_another_name")
mutant("git: commondir is not protected", "host/survey-git.c",
       'protect(h, root, dir, "commondir", ".\\n");', "",
       FILES + "test_absent_protected_name_cannot_be_made")
mutant("report: not ranked", "run/found.c",
       "int order = (a->rank > b->rank) - (a->rank < b->rank);", "int order = 0;",
       "tests/cli/test_run.py::test_report_is_ranked_and_whole_in_the_record")

CONFIG = "tests/real/test_git.py"
mutant("git: repositories that are broken", "host/survey-git.c",
       "git_look(workspace, workspace, &git, &common) == GIT_NONE)\n\t\treturn rc;",
       "rc == 0)\n\t\treturn rc;", GIT_DIRS + "test_broken_repository_is_not_started_in")
mutant("git: objects and refs are not pinned", "host/survey-git.c",
       'pin(h, root, dir, "objects");', "",
       GIT_DIRS + "test_workspace_is_not_taken_for_a_bare_repository")
mutant("git: HEAD is not put back", "git/git-mend.c", "if (rc > 0 && now.valid)", "if (rc >= 0)",
       GIT_DIRS + "test_workspace_is_not_taken_for_a_bare_repository",
       GIT_DIRS + "test_head_of_the_main_worktree_is_put_back")
mutant("git: closed directories stay closed", "git/git-mend.c",
       "return chmod(self, (st.st_mode & 07777) | S_IRWXU) == 0;", "return self[0] == '/';",
       GIT_DIRS + "test_closed_worktrees_are_opened_again")
mutant("git: any key leaves the box", "git/git-allow.c",
       "if (!strcmp(s->section, outs[i].section) && !strcmp(s->key, outs[i].key) &&",
       "if (!strcmp(s->section, outs[i].section) &&", "unit/git_config", CONFIG)
mutant("git: helpers as URLs", "git/git-allow.c", '!strchr(":-", url[n + 1]) &&', "",
       "unit/git_config", CONFIG)
mutant("git: a hard-linked config is written", "run/git-box.c",
       "if (S_ISREG(st.st_mode) && st.st_nlink == 1)", "if (S_ISREG(st.st_mode))", CONFIG,
       GUARDS + "test_config_with_two_names_is_not_written")
mutant("git: the box's copy through a link", "run/git-box.c",
       "RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);", "0);",
       GUARDS + "test_copy_of_the_config_replaced_by_a_link", CONFIG)
mutant("looks: EACCES is an absence", "base/look.c",
       "return err == ENOENT || err == ENOTDIR;",
       "return err == ENOENT || err == ENOTDIR || err == 13;",
       GIT_DIRS + "test_start_stops_at_what_it_cannot_look_into",
       GIT_DIRS + "test_closed_worktrees_are_opened_again")
mutant("looks: EWOULDBLOCK is an absence", "base/look.c",
       "return err == ENOENT || err == ENOTDIR;",
       "return err == ENOENT || err == ENOTDIR || err == 11;",
       "tests/fault/test_looks.py::test_a_lease_of_another_process")

# ---- the command line ---------------------------------------------------------------------

mutant("-y approves a manifest", "cli/start.c", "if (a->yes && agent->untrusted)",
       "if (!a && agent->untrusted)",
       SESSIONS + "test_command_of_a_project_that_is_not_approved")
mutant("the host's proc can be mounted", "plan/places.c",
       'if (path_within(fact->real, "/proc") || path_within("/proc", fact->real))',
       'if (path_within(fact->real, "/proc"))', ROUNDABOUT + "test_whole_host_cannot_be_mounted")
mutant("files are made through a mount", "plan/places.c",
       "if (!place->create && is_made(place))", "if (!place->target && is_made(place))",
       "tests/cli/test_agent_attacks.py::test_nothing_is_made_through_a_mount_over_the_home")
mutant("control: others may connect", "supervise/control.c", "if (fd < 0 || fchmod(fd, 0600) < 0)",
       "if (fd < 0 || fchmod(fd, 0666) < 0)", "unit/control")
mutant("recording: a hard-linked file", "supervise/asciicast.c", "st.st_nlink == 1 && st.st_size == 0)",
       "st.st_size == 0)", "unit/record")

# ---- the broker ---------------------------------------------------------------------------

mutant("jail: capabilities of root", "helper/jail.c", "rc = no_capabilities(f);", "rc = 0;",
       "unit/jail")
mutant("jail: dumpable", "helper/jail.c", "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||", "",
       "unit/jail")
mutant("jail: other families", "helper/jail.c", "IS(AF_INET6, 0, 1),", "IS(AF_INET6, 0, 0),",
       "unit/jail")
mutant("jail: any fcntl", "helper/jail.c", "IS(F_SETPIPE_SZ, 0, 1),", "IS(F_SETPIPE_SZ, 0, 0),",
       "unit/jail")
mutant("jail: files", "helper/jail.c", "rc = no_files(f);", "rc = 0;", "unit/jail")
mutant("jail: one call more", "net/broker/broker-jail.c", "\tSYS_close,\n", "\tSYS_close, SYS_openat,\n",
       "unit/jail")
mutant("jail: another architecture", "helper/jail.c", "IS(ARCH, 1, 0),", "IS(ARCH, 1, 1),",
       "unit/jail")
mutant("names: 0X is no number", "net/policy/name.c", "(s[1] == 'x' || s[1] == 'X')", "s[1] == 'x'",
       "unit/name")
mutant("addresses: loopback", "net/policy/name.c", '{ V4(127), 8, 0, false, "loopback" },',
       '{ V4(127), 8, 0, true, "loopback" },', "unit/name", "unit/policy")
mutant("addresses: cloud metadata", "net/policy/name.c",
       '{ V4(168, 63, 129, 16), 32, 0, true, "cloud platform service" },', "", "unit/name")
mutant("addresses: mapped ones", "net/policy/name.c",
       "if (!memcmp(byte, mapped, sizeof(mapped)))", "if (byte[0] && !memcmp(byte, mapped, 12))",
       "unit/name", "unit/policy")
mutant("addresses: NAT64 of private ones", "net/policy/name.c",
       '{ V6(0, 0x64, 0xff, 0x9b), 96, 12, false, "NAT64 of a private address" },', "",
       "unit/name", "unit/policy")
mutant("policy: what can never be opened", "net/policy/policy.c", "if (range && !range->can_open)",
       "if (range && !range->bits)", "unit/policy")
mutant("policy: own addresses, embedded", "net/policy/policy.c",
       "(embedded && address_equal(&p->own[i], &inner)))", "(embedded && !inner.family))",
       "unit/policy")
mutant("policy: denied by way of NAT64", "net/policy/policy.c",
       "return r->deny && address_embedded(a, &inner) &&",
       "return r->deny && !a->family && address_embedded(a, &inner) &&", "unit/policy")
mutant("policy: host.internal is loopback only", "net/policy/policy.c",
       "return is_loopback(&a) ? by_name : verdict_of(POLICY_PRIVATE, -1);", "return by_name;",
       "unit/policy")
mutant("lookup: any id", "net/proto/lookup.c", "if (n < HEADER || get_u16(message) != id)",
       "if (n < HEADER || (id && n > 65535))", "unit/lookup")
mutant("lookup: answers to other questions", "net/proto/lookup.c",
       "!same_bytes(m->p + HEADER, labels, len) ||", "", "unit/lookup")
mutant("lookup: answers of another type", "net/proto/lookup.c",
       "get_u16(m->p + HEADER + len) != type ||", "", "unit/lookup")
mutant("policy: resolved names are judged", "net/policy/policy.c",
       "return v.reason == POLICY_OPEN ? by_name : v;", "return by_name;", "unit/policy")

ATTACKS = "tests/net/test_attacks.py::"
mutant("broker: outlives the supervisor when it is stopped", "helper/spawn.c",
       "prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);", "",
       ATTACKS + "test_the_supervisor_killed_means_no_broker")
mutant("broker: descriptors of the supervisor", "helper/spawn.c",
       "if (fd_close_range(HELPER_FIRST + (unsigned int)n, ~0U) < 0)", "if (HELPER_FIRST < 0)",
       ATTACKS + "test_no_descriptor_of_the_network_is_in_the_box")
mutant("broker: what is denied is asked about", "net/broker/conn-admit.c",
       "(v.reason == POLICY_UNLISTED || v.reason == POLICY_PORT);",
       "(v.reason == POLICY_UNLISTED || v.reason == POLICY_PORT || v.reason == POLICY_DENIED);",
       "tests/net/test_steering.py::test_what_is_denied_is_not_asked_about")

# ---- files of the user's ------------------------------------------------------------------

mutant("ssh: helpers for tokens", "run/ssh-agent.c",
       '{ "SSH_PKCS11_HELPER=/nonexistent",\n\t\t"SSH_SK_HELPER=/nonexistent", NULL };',
       "{ NULL };", "tests/cli/test_ssh.py::test_the_agent_starts_no_helpers")
mutant("hosts of the user: a link", "host/user-hosts.c",
       "int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK",
       "int fd = open(path, O_RDONLY | O_NONBLOCK",
       "unit/user_hosts", "tests/cli/test_control.py::test_always_follows_no_link")
mutant("own directories: another user's", "base/xdg.c", "if (st.st_uid != geteuid())",
       "if (st.st_uid == (uid_t)-1)", "unit/trust", "unit/registry", "unit/journal",
       GUARDS + "test_state_of_another_user_is_not_used")
mutant("trust: a record that is a link", "manifest/trust.c",
       "open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK", "open(file, O_RDONLY | O_NONBLOCK",
       "unit/trust")
mutant("trees: links are followed", "overlay/tree.c",
       "\tDIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,",
       "\tDIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC,", "unit/tree")
mutant("walk cache: others may write it", "host/walk-cache.c", "(st.st_mode & 022) ||", "",
       "tests/cli/test_walk_cache.py::test_damaged_cache_is_not_used")
mutant("walk cache: its sum", "host/walk-cache.c",
       "h->begun <= c->begun.tv_sec && sum_of(h + 1, size - sizeof(*h), 0) == h->sum;",
       "h->begun <= c->begun.tv_sec;", "tests/cli/test_walk_cache.py::test_damaged_cache_is_not_used")
mutant("walk cache: file systems that are not trusted", "host/walk-cache.c",
       "!is_trusted_fs(fd) ||", "",
       "tests/cli/test_walk_cache.py::test_other_file_systems_have_no_cache")

# ---- which project it is ------------------------------------------------------------------

mutant("identity: a repository of another user", "state/root.c",
       "if (!entry->st_uid || entry->st_uid == geteuid() ||",
       "if (entry->st_uid || entry->st_uid == geteuid() ||", "unit/root")
mutant("identity: need not point back", "state/root.c",
       "if (!c->by || git_points_back(c->git, c->holder))", "if (c->holder)", "unit/root")
mutant("identity: core.worktree of another", "state/root.c",
       "return dir && !strcmp(dir, workspace);\n}\n\nstatic long long",
       "return dir;\n}\n\nstatic long long",
       "unit/root")
mutant("identity: separated, but hard-linked", "state/root.c", "file.st_nlink != 1 ||", "",
       "unit/root")
mutant("identity: not made in one moment", "state/root.c",
       "if (born < 0 || llabs(changed_ms(&file) - born) >= SAME_MOMENT_MS)", "if (born < 0)",
       "unit/root")
mutant("identity: a broken .git is passed over", "state/root.c",
       "return kind == GIT_NONE ? end_at_broken(c, entry) : kind;", "return kind;",
       GIT_DIRS + "test_broken_nested_repository_is_not_the_outer_project", "unit/root")

# ---- newer guards ---------------------------------------------------------------------------

STORE = OBEYED + "test_store_to_a_mapped_page_is_reported"
mutant("contents: the times of tmpfs are enough", "base/look.c",
       "return type == EXT4_SUPER_MAGIC ||", "return type == TMPFS_MAGIC ||", STORE)
mutant("contents: not those of git's directories", "host/git-dirs.c",
       "contents_differ(&c->seen->contents, e->dir, e->name, ret));", "!e->name);", STORE)
mutant("contents: not below an obeyed directory", "host/survey-rules.c",
       "if (needed && strcmp(entry->name, \".git\") != 0)", "if (needed && !entry->name)", STORE)
mutant("contents: a file that is new here", "host/contents.c", "\tif (!before)\n\t\treturn true;",
       "\tif (!before)\n\t\treturn !st;", STORE)

APPLY = "tests/cli/test_apply.py::"
mutant("apply: set-id bits", "overlay/apply-plan.c", ".mode = mode & 0777,", ".mode = mode & 07777,",
       APPLY + "test_nothing_special_and_no_set_id_bit")
