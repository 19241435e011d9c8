"""Git over ssh: the key, its menu and the warnings of a push."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import GIT, Row

ROWS: Final = (
    Row(
        text='error: <urls> bind over ssh and need the "<secret>" Secret — re-run and pick a key source, create the Secret yourself (kubectl -n <namespace> create secret generic <secret> --from-file=identity=<path>), or bind the urls over https (+ a token in git.credentials)',
        page=GIT,
        tests=(
            "tests/unit/infra/git/test_choose.py::test_who_picks_none_gets_the_other_ways",
            "tests/cluster/test_git_credentials.py::test_with_no_terminal_nothing_is_picked_and_nothing_written",
        ),
    ),
    Row(
        text="where should the git ssh key come from? — not a tty; pass --yes to take the recommended option non-interactively",
        page=GIT,
        tests=(
            "tests/unit/cli/test_output.py::test_without_a_terminal_a_menu_is_not_shown_and_nothing_is_picked",
            "tests/cluster/test_git_credentials.py::test_with_no_terminal_nothing_is_picked_and_nothing_written",
        ),
    ),
    Row(
        text="error: refusing the key from <where>: it is passphrase-protected. The in-cluster clone runs unattended and cannot answer a passphrase, and jr2 will not store a decrypted copy — use an unencrypted key, or let jr2 generate a deploy key",
        page=GIT,
        tests=(
            "tests/unit/infra/git/test_keys.py::test_a_key_with_a_passphrase_is_refused",
            "tests/cluster/test_git_credentials.py::test_a_key_with_a_passphrase_is_refused",
        ),
    ),
    Row(
        text='warning: git.credentials "<match>": the Secret "<name>" does not exist in namespace <namespace> — a push that needs it is refused at provision until it exists and jr2 up runs again (ADR-0051)',
        page=GIT,
        tests=(
            "tests/unit/infra/converge/test_plan_git.py::test_what_will_fail_later_is_warned_about_in_each_run",
            "tests/cluster/test_git_credentials.py::test_with_no_terminal_nothing_is_picked_and_nothing_written",
        ),
    ),
    Row(
        text='warning: git.credentials "<match>": the Secret "<name>" holds no key <key> — a push that needs it is refused at provision until it exists and jr2 up runs again (ADR-0051)',
        page=GIT,
        tests=(
            "tests/unit/infra/converge/test_plan_git.py::test_what_will_fail_later_is_warned_about_in_each_run",
        ),
    ),
    Row(
        text="<url> is an ssh url and no git.credentials entry names a key for it — its cache clone will fail unless the host allows anonymous ssh",
        page=GIT,
        tests=(
            "tests/unit/infra/converge/test_plan_git.py::test_what_will_fail_later_is_warned_about_in_each_run",
            "tests/cluster/test_git_credentials.py::test_with_no_terminal_nothing_is_picked_and_nothing_written",
        ),
    ),
)
