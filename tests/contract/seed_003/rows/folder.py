"""The config, the Kit and the types: what the folder itself gets wrong."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import CHECK, CONVERGE, Row

ROWS: Final = (
    Row(
        text="error: not inside a jr2 instance — no jr2_config.py found walking up from cwd",
        page=CHECK,
        tests=("tests/unit/cli/test_instance_verbs.py::test_a_verb_of_an_instance_needs_one",),
    ),
    Row(
        text="error: Kit version mismatch — an Instance has one (ADR-0056):",
        page=CHECK,
        below=(
            "jr2 resolves to <path> (<version>)",
            "this jr2 (<version>) runs against <path> (<version>)",
            'install the Instance\'s dependencies (<folder>/pyproject.toml pins "jr2" and "jr2-cli" at one exact version)',
            'pin "jr2" and "jr2-cli" at ONE exact version in <folder>/pyproject.toml and reinstall',
            'add "jr2-cli==<version>" to the dev group in <folder>/pyproject.toml and reinstall — the Instance\'s own jr2 then runs',
        ),
        tests=(
            "tests/unit/cli/test_instance_verbs.py::test_an_instance_of_another_kit_version_is_refused",
            "tests/unit/infra/test_instance_kit.py::test_another_copy_and_two_pins",
            "tests/unit/infra/test_instance_kit.py::test_nothing_is_installed",
            "tests/unit/infra/test_instance_kit.py::test_an_instance_without_the_command",
        ),
    ),
    Row(
        text='error: <folder>/jr2_config.py has no "config" (use `config = Config(…)`)',
        page=CHECK,
        tests=("tests/unit/infra/test_check.py::test_the_first_refusal_of_the_order_wins",),
    ),
    Row(
        text="error: <folder>/jr2_config.py at <field>: <problem>",
        page=CHECK,
        tests=("tests/unit/cli/test_runs.py::test_an_orchestrator_that_is_not_there_is_an_error",),
    ),
    Row(
        text="error: <folder>/jr2_config.py at git.credentials[<i>]<path>: <problem> — an entry is { match, token?, ssh_key?, push?: { ssh_key } | { token }, sign?: { ssh_key | gpg_key, name, email }, committer?: { name, email } } (ADR-0051)",
        page=CHECK,
        tests=("tests/unit/infra/test_check.py::test_a_wrong_field_is_named_by_its_place",),
    ),
    Row(
        text="error: no kube context — `jr2 cluster create` or `kind create cluster` (or point kubectl at one), then re-run `jr2 up`",
        page=CONVERGE,
        tests=(
            "tests/unit/cli/test_instance_verbs.py::test_no_context_at_all_says_how_to_get_one",
            "tests/cluster/test_first_run.py::test_no_context",
        ),
    ),
    Row(
        text="error: this instance's pyproject.toml has no [tool.jr2] typecheck — `jr2 init` scaffolds one, and `jr2 up` typechecks the folder before it builds anything",
        page=CHECK,
        tests=(
            "tests/unit/cli/test_instance_verbs.py::test_check_streams_its_steps_and_its_error_as_events",
        ),
    ),
    Row(
        text="error: this instance's type checker (<tool>) is missing — install its dependencies (uv, poetry, or pdm), then re-run `jr2 up`.",
        page=CHECK,
        tests=("tests/unit/infra/test_typecheck.py::test_a_checker_that_is_not_installed",),
    ),
    Row(
        text="refusing: this instance does not typecheck — nothing was built and nothing was applied",
        page=CHECK,
        tests=(
            "tests/contract/test_new_instance.py::test_a_new_instance_installs_and_checks",
            "tests/apiserver/derived/test_refusals_write_nothing.py::test_a_refusal_leaves_every_object_as_it_was",
        ),
    ),
)
