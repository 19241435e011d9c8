"""The lines of steps that go well, and what only a run shows."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import GIT, NOWHERE, Row

ROWS: Final = (
    Row(
        text='jr2 up — instance "<instance>" → context <context> / namespace <namespace>',
        page=NOWHERE,
        tests=(
            "tests/unit/cli/test_instance_verbs.py::test_up_says_its_header_before_what_it_refuses",
            "tests/cluster/test_kit_upgrade.py::test_one_converge_moves_orchestrator_operator_and_assembly",
        ),
    ),
    Row(
        text="typecheck: <tool> (the instance's own checker)",
        page=NOWHERE,
        tests=(
            "tests/contract/test_new_instance.py::test_a_new_instance_installs_and_checks",
            "tests/cluster/test_first_run.py::test_a_type_error_changes_nothing",
        ),
    ),
    Row(
        text="orchestrator: applying (image <image>)",
        page=NOWHERE,
        tests=(
            "tests/unit/infra/converge/test_plan.py::test_a_converged_cluster_is_proved_and_says_the_same_lines",
        ),
    ),
    Row(
        text="orchestrator: waiting for rollout",
        page=NOWHERE,
        tests=(
            "tests/unit/cli/test_output.py::test_progress_is_shown_on_a_terminal_only_and_a_line_stays_whole",
            "tests/cluster/test_kit_upgrade.py::test_one_converge_moves_orchestrator_operator_and_assembly",
        ),
    ),
    Row(
        text="converged — `jr2 run <workflow>` when ready",
        page=NOWHERE,
        tests=(
            "tests/unit/cli/test_output.py::test_a_stream_of_another_encoding_still_gets_the_line",
            "tests/cluster/test_demo.py::test_the_demo_ends_with_a_run",
        ),
    ),
    Row(
        text='git.credentials "<match>": clone Secret jr2-git-<hash>',
        page=NOWHERE,
        tests=(
            "tests/unit/infra/git/test_tokens.py::test_each_entry_whose_variable_is_set_has_a_secret",
            "tests/cluster/test_git_credentials.py::test_generate_waits_makes_the_secret_and_reminds",
        ),
    ),
    Row(
        text='<url> bind over ssh and the "<secret>" Secret their git.credentials entry names does not exist.',
        page=NOWHERE,
        below=(
            'whichever key you pick lands in a Secret in namespace "<namespace>" — readable by anyone with',
            "Secret read there, and at rest in etcd. A deploy key leaks read access to the repos you",
            "register it on; a personal key leaks everything it can reach.",
            "where should the git ssh key come from?",
            "❯ generate a fresh in-cluster deploy keypair (recommended — one registration per repo)",
            "use another local key (type a path)",
            "paste a private key (input hidden)",
            "(↑/↓ move · enter selects · esc cancels)",
        ),
        tests=(
            "tests/unit/infra/git/test_choose.py::test_generate_shows_the_public_half_and_waits",
            "tests/cluster/test_git_credentials.py::test_with_no_terminal_nothing_is_picked_and_nothing_written",
            "tests/unit/cli/test_output.py::test_without_a_terminal_a_menu_is_not_shown_and_nothing_is_picked",
            "tests/unit/cli/test_prompts.py::test_keys_of_the_menu",
        ),
    ),
    Row(
        text="generated deploy key <fingerprint> — register this PUBLIC key (read access):",
        page=NOWHERE,
        below=("register this public key with your git host, then press enter to continue:",),
        tests=(
            "tests/unit/infra/git/test_choose.py::test_generate_shows_the_public_half_and_waits",
            "tests/cluster/test_git_credentials.py::test_generate_waits_makes_the_secret_and_reminds",
        ),
    ),
    Row(
        text='git ssh: a deploy key was generated into "<secret>" this converge and nothing has registered it yet:',
        page=NOWHERE,
        below=(
            "until it is registered, <url> will not sync (the Orchestrator serves anyway)",
            "the cache agent retries on its own — `jr2 status` reports each Repo's last error per node",
        ),
        tests=(
            "tests/unit/infra/git/test_choose.py::test_the_reminder_of_a_fresh_key",
            "tests/cluster/test_git_credentials.py::test_generate_waits_makes_the_secret_and_reminds",
        ),
    ),
    Row(
        text='Sandbox "<name>" refuses the per-run repo <url> for slot "<slot>": no git.credentials entry matches "<identity>" (entries: <entries>). A per-run url can spend the cluster\'s credential against any host, so jr2_config.py must admit it by prefix (ADR-0051).',
        page=GIT,
        tests=("tests/unit/kit/test_git_credentials.py::test_a_url_that_none_admits_is_refused",),
    ),
)
