"""The attacks again, each by a command that `carrel exec` has added to a box.

These are the tests of the other files, with one thing replaced: how a command gets into a box.
"""

import arena
import lib
import pytest
import test_files
import test_kernel
import test_network
import test_processes

pytestmark = pytest.mark.usefixtures("tool")

AGAIN = {
    test_files: """
        protected_name_is_unchanged protected_through_proc_root protection_cannot_be_unmounted
        hidden_through_proc_root hidden_file_is_not_written nothing_is_written_outside
        read_only_mount_is_not_written nothing_is_read_outside new_root_is_not_a_way_out
        """,
    test_kernel: """
        numbers_nobody_has_used_yet socket_families socket_types no_new_namespaces
        unshare_unknown_bits_and_setns user_namespaces_are_used_up personality
        no_way_around_the_filter
        """,
    test_network: "there_is_no_route raw_packets netlink socket_file_of_the_host",
    test_processes: """
        init_cannot_be_looked_into memory_of_a_host_process environment_of_every_process
        no_other_identity shared_memory_of_the_host
        posix_shared_memory_and_queues_of_the_host
        """,
}
FIXTURES = {test_processes: "victim"}

for module, names in AGAIN.items():
    globals().update({f"test_{n}": getattr(module, f"test_{n}") for n in names.split()})
for module, names in FIXTURES.items():
    globals().update({name: getattr(module, name) for name in names.split()})


@pytest.fixture(autouse=True)
def through_exec(monkeypatch):
    ways = []

    def way(*cmd, **how):
        ways.append(cmd)
        return arena.through_exec(*cmd, **how)

    monkeypatch.setattr(arena, "by_box", way)
    monkeypatch.setattr(lib, "box", None)  # no other way is taken unseen
    yield
    assert ways


def test_refused_calls():
    """All in one box; test_kernel.py has a control for each."""
    calls = test_kernel.PRESENT + test_kernel.OPTIONAL
    said = arena.inside(*(f"sys {call}" for call in calls))
    assert dict(zip(calls, said)) == dict.fromkeys(calls, "ENOSYS")
