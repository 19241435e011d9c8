"""Every refusal, error and warning of seed 003, in its order, with the tests that show its text.

The lines that its examples show of steps that go well follow at the end.

A text is the seed's, after the word table of the design: `<…>` stands for a value, and `…` for a
part that the seed itself leaves open. Two texts have another place than in the seed, as the design
says: lockfiles are met in step 4, and the folder of a Sandbox Image in `jr2 check`.

What only a pod of a Harness, an Effector or a Sandbox can show, and the answers of a model
provider, are not in this table yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One text of the seed.

    Args:
        text: the first line that the command prints.
        tests: the tests that show it, as pytest names them.
        page: the page of the docs that has it; `NOWHERE` for the line of a step that goes well.
        below: lines that follow it, each shown by one of the tests too.
    """

    text: str
    tests: tuple[str, ...] = ()
    page: str
    below: tuple[str, ...] = ()


CHECK: Final = "check.md"
CONVERGE: Final = "converge.md"
FIX: Final = "fix-a-failed-converge.md"
HOLD: Final = "hold-secrets.md"
NOWHERE: Final = ""
"""A line of a step, which the pages show in examples."""
GIT: Final = "give-the-cluster-git-credentials.md"

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
    Row(
        text='refusing: workflow "<workflow>": `machine` is <what it is>, but Machine(…).build() did not make it, so no door reads its input: a run starts with any input, and the Console start form is only a field for JSON — export what .build() returns (ADR-0033)',
        page=CHECK,
        tests=("tests/unit/kit/test_walk.py::test_the_door_rule",),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Repo Slot "<slot>" open — bind it where the Machine is registered: machine = customize(<import>, repos={"<slot>": "<url>"})  (ADR-0051)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves its Repo Slots open — bind it where the Machine is registered: machine = customize(<import>, repos={"<slot>": "<url>"})  (ADR-0051)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Agent "<agent>" open — bind it where the Machine is registered: machine = customize(<import>, agents={"<agent>": {"model": "<provider>/<model>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the url of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"url": "https://<host>/<path>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the argv of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"argv": ["<program>", "<arg>"]}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the secret of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"secret": "<name>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the url and secret of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"url": "https://<host>/<path>", "secret": "<name>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the argv and secret of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"argv": ["<program>", "<arg>"], "secret": "<name>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Agent "<agent>" open (on the Machine composed as "<slot>") — bind it where the Machine is registered: machine = customize(<import>, actors={"<slot>": {"agents": {"<agent>": {"model": "<provider>/<model>"}}}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Repo Slot "<slot>" open (on the Machine composed as "<slot>" → "<slot>") — bind it where the Machine is registered: machine = customize(<import>, actors={"<slot>": {"actors": {"<slot>": {"repos": {"<slot>": "<url>"}}}}})  (ADR-0051)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Agent "<agent>" open on a Machine invoked inline — no customize() reaches an actor without a slot key; declare it with .child("<slot>", …) and bind it there  (ADR-0049, ADR-0054)',
        page=CHECK,
        tests=("tests/unit/infra/test_machine_refusals.py::test_what_no_line_mends",),
    ),
    Row(
        text='refusing: workflow "<workflow>": the Size leaves the Harness container <memory> memory and <cpu> cpu, and it needs 256Mi and more than 0 cpu: <total> minus Custodian 64Mi/50m (kit); make <fields> larger; a composer retunes it where the Machine is registered: machine = customize(<import>, resources={"limits": {"memory": "<memory>"}})',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" (on the Machine composed as "<slot>"): the Size leaves the Harness container <memory> memory and <cpu> cpu, and it needs 256Mi and more than 0 cpu: <total> minus Custodian 64Mi/50m (kit), User Container <size> (<field>), Effector 64Mi/50m (kit); make <field> larger; a composer retunes it where the Machine is registered: machine = customize(<import>, actors={"<slot>": {"resources": {"limits": {"memory": "<memory>"}}}})',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='error: Workspace of workflow "<workflow>": the push of Repo Slot "<slot>" (<url>): git.credentials entry "<match>" cannot push — its token\'s variable <NAME> is not set — set it in .env (ADR-0051)',
        page=CHECK,
        tests=("tests/unit/infra/test_machine_refusals.py::test_what_no_line_mends",),
    ),
    Row(
        text='error: the Sandbox Image context <folder> cannot be read (<code>) — a `workspace()` names its image with `context(__file__, "<dir>")`, so that directory must exist beside the Machine\'s own module (ADR-0037/0049).',
        page=CHECK,
        tests=("tests/unit/infra/test_machine_refusals.py::test_the_folder_of_a_sandbox_image",),
    ),
    Row(
        text="error: <folder> holds lockfiles from more than one package manager (<manager>: <lockfile>; <manager>: <lockfile>) — delete the stale one, so the bundle installs the dependency graph the instance really uses",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_lockfile_refusals",),
    ),
    Row(
        text="error: <folder> has a Pipfile.lock, and pipenv is not supported — use uv, poetry, or pdm",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_lockfile_refusals",),
    ),
    Row(
        text="error: <folder> has no lockfile — jr2 installs the instance's dependencies from uv (uv.lock), poetry (poetry.lock), pdm (pdm.lock) or a pylock.toml; run your package manager's lock and commit the lockfile it writes",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_lockfile_refusals",),
    ),
    Row(
        text="error: cannot stage the Assembly: it would carry a second copy of a Kit package (ADR-0069)",
        page=CONVERGE,
        below=(
            "<path> is a second copy of <package>, brought by <package>: the Orchestrator's image ships <package> for jr2 <version>, and an Assembly that carries its own copy loads Machines whose Menus are empty (ADR-0054) — align that dependency with the <package> jr2 uses, or remove it, and reinstall",
        ),
        tests=("tests/unit/infra/test_assembly_seal.py::test_second_copies_and_shadows",),
    ),
    Row(
        text='error: cannot seal the Assembly: the symlink <path> points outside the Assembly ("<target>") — an Assembly carries only what it holds; install that dependency as a copy, not a link',
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_links_that_leave_are_refused",),
    ),
    Row(
        text='error: cannot seal the Assembly: the symlink <path> points outside the Assembly ("<target>") — an Assembly carries only what it holds; make the link relative, with a target inside the Instance',
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_links_that_leave_are_refused",),
    ),
    Row(
        text="error: cannot seal the Assembly: <file> holds the staging path (<path>) …",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_the_staging_path_is_refused",),
    ),
    Row(
        text="refusing: the staged Assembly does not hold the Workflows this folder holds (ADR-0069): <files> — the Assembly holds what the Instance's install keeps; check what [tool.jr2] exclude leaves out",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/test_assembly_seal.py::test_workflows_that_are_left_out_are_named",
        ),
    ),
    Row(
        text='refusing: cannot reach the API server of <context> (error: context "<context>" does not exist). Nothing was applied.',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/test_kube.py::test_an_unknown_context_is_named_as_kubectl_names_it",
            "tests/apiserver/test_cluster_checks.py::test_a_context_that_is_not_there",
        ),
    ),
    Row(
        text="refusing: <context> runs Kubernetes <version>; jr2 needs Kubernetes 1.35 or newer (every Sandbox mounts jr2's runtime as an image volume, ADR-0037). Nothing was applied.",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_an_older_version_is_refused",
            "tests/apiserver/test_cluster_checks.py::test_a_cluster_before_1_35_is_refused_and_nothing_is_written",
        ),
    ),
    Row(
        text='refusing: namespace "<namespace>" on <context> belongs to another instance ("<owner>")',
        page=CONVERGE,
        below=("pick a different namespace (-n) or context (--context)",),
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_the_namespace_of_another_instance_is_refused",
            "tests/apiserver/test_cluster_checks.py::test_that_of_another_instance_is_refused",
        ),
    ),
    Row(
        text='first contact: deploy instance "<instance>" to context <context> (create namespace "<namespace>")? [y/N] <answer>',
        page=CONVERGE,
        tests=(
            "tests/apiserver/test_first_contact.py::test_any_other_answer_than_yes_changes_nothing",
        ),
    ),
    Row(
        text='first contact: deploy instance "<instance>" to context <context> (adopt existing namespace "<namespace>")? [y/N] <answer>',
        page=CONVERGE,
        tests=(
            "tests/apiserver/test_first_contact.py::test_a_namespace_without_an_owner_is_adopted_and_keeps_its_labels",
        ),
    ),
    Row(
        text="aborted — nothing was changed",
        page=CONVERGE,
        tests=(
            "tests/unit/cli/test_instance_verbs.py::test_down_asks_on_a_terminal_only_and_changes_nothing_without_an_answer",
            "tests/apiserver/derived/test_refusals_write_nothing.py::test_a_refusal_leaves_every_object_as_it_was",
        ),
    ),
    Row(
        text='first contact: deploy instance "<instance>" to context <context> (create namespace "<namespace>")? — not a tty; pass --yes to proceed non-interactively',
        page=CONVERGE,
        tests=(
            "tests/apiserver/test_cluster_checks.py::test_first_contact_asks_and_without_a_terminal_nothing_changes",
        ),
    ),
    Row(
        text="refusing: <context> (Kubernetes <version>) drops pod-level resources — the PodLevelResources feature gate is off, and a Workspace's Size cannot hold (ADR-0060). Enable the gate on the API server and kubelets. The namespace was created; nothing else was applied.",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_dropped_pod_resources_are_refused",
            "tests/apiserver/test_cluster_checks.py::test_a_cluster_that_drops_them_is_refused_after_the_namespace",
        ),
    ),
    Row(
        text="warning: could not confirm pod-level resources on <context>: <error>",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_dropped_pod_resources_are_refused",
            "tests/apiserver/test_cluster_checks.py::test_what_cannot_be_confirmed_is_a_warning",
        ),
    ),
    Row(
        text='error: `platforms` names <platforms> — the kit releases images for <platforms> and nothing else, so an image built for anything else could not be joined by a Kit image in the same pod. Set `platforms` in jr2_config.py (docker platform strings, e.g. "linux/arm64") to name the set to build for.',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_platforms.py::test_a_platform_without_kit_images_is_an_error",
        ),
    ),
    Row(
        text='error: this cluster\'s schedulable nodes report <architectures> — the kit releases images for <platforms> and nothing else, so an image built for anything else could not be joined by a Kit image in the same pod. Set `platforms` in jr2_config.py (docker platform strings, e.g. "linux/arm64") to name the set to build for.',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_platforms.py::test_a_platform_without_kit_images_is_an_error",
            "tests/apiserver/test_cluster_checks.py::test_nodes_without_an_image_of_the_kit",
        ),
    ),
    Row(
        text="warning: no Sandbox node right now — a Sandbox stays Pending until one appears:",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_sandboxes.py::test_no_sandbox_node_says_of_each_node_why",
            "tests/apiserver/test_cluster_checks.py::test_none_says_of_each_node_why_and_goes_on",
        ),
    ),
    Row(
        text='warning: no Sandbox node right now has the allocatable for a Size of <size> (workflow "<workflow>") — its Sandbox stays Pending until one does',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_sandboxes.py::test_a_size_that_no_node_can_allocate_is_a_warning_for_each_workflow",
            "tests/apiserver/test_cluster_checks.py::test_a_size_without_room_is_a_warning",
        ),
    ),
    Row(
        text="error: this cluster needs a <platforms> build, which docker buildx delivers by PUSHING a manifest list (kind load cannot carry one) — set `registry` in jr2_config.py, or name a single platform with `platforms`",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/test_images_sandbox.py::test_two_platforms_need_a_registry",
            "tests/apiserver/test_cluster_checks.py::test_two_platforms_need_a_registry",
        ),
    ),
    Row(
        text="error: context <context> is not a kind cluster and no `registry` is configured — set `registry` in jr2_config.py (from env) so the image can be pushed (ADR-0019)",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_images_are_delivered_to_clusters_of_this_machine_only",
            "tests/apiserver/test_cluster_checks.py::test_1_35_and_what_is_newer_is_taken",
        ),
    ),
    Row(
        text="error: this host cannot build for <platforms>: a foreign architecture's RUN steps need qemu binfmt emulation, and none is registered (this builder targets <platforms>). Install it, then re-run:",
        page=CONVERGE,
        below=("docker run --privileged --rm tonistiigi/binfmt --install <arch>",),
        tests=(
            "tests/unit/infra/test_images_sandbox.py::test_a_platform_that_the_builder_lacks_names_the_emulator",
            "tests/apiserver/test_cluster_checks.py::test_a_foreign_platform_needs_an_emulator",
            "tests/cluster/test_foreign_platform.py::test_the_builder_itself_says_what_it_cannot_build",
        ),
    ),
    Row(
        text='error: harness.env_from references Secret "<name>", which does not exist in namespace "<namespace>" — create it first: kubectl -n <namespace> create secret generic <name> --from-literal=KEY=...',
        page=HOLD,
        tests=(
            "tests/unit/infra/secrets/test_step_ten.py::test_env_from_names_a_secret_that_does_not_exist",
        ),
    ),
    Row(
        text='error: secrets[<i>] needs exactly one of value or value_from — <NAME> has neither, which is what an unset .env variable reads as: set <NAME> in .env, or reference a Secret with value_from=SecretKeyRef(name="<name>", key="<key>") (ADR-0059)',
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_neither_value_nor_value_from",),
    ),
    Row(
        text="error: secrets[<i>] needs exactly one of value or value_from — not both (ADR-0059)",
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_both_value_and_value_from",),
    ),
    Row(
        text="error: secrets[<i>].value is empty — set <NAME> in .env (ADR-0059)",
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_an_empty_value",),
    ),
    Row(
        text="error: secrets[<i>].value holds a character a header cannot carry (outside printable ASCII) or leading or trailing space — a pasted newline, most likely; the value itself is not shown (ADR-0059)",
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_a_value_that_no_header_carries",),
    ),
    Row(
        text='error: secrets[<i>].value_from names Secret "<name>", which does not exist in the instance\'s namespace — create it first: kubectl create secret generic <name> --from-literal=<key>=... (ADR-0019, ADR-0059)',
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_a_secret_that_does_not_exist",),
    ),
    Row(
        text='error: secrets[<i>].value_from names key "<key>" of Secret "<name>", which has no such key (ADR-0059)',
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_a_key_that_does_not_exist",),
    ),
    Row(
        text="error: <part>: rollout did not complete in namespace <namespace> — the pods say:",
        page=CONVERGE,
        below=(
            "pod <pod> (Pending) on node <node> (<arch>)",
            "container <container>: ImagePullBackOff",
            "image <image>",
            "event Warning Failed: <message>",
        ),
        tests=(
            "tests/unit/infra/rollout/test_rollout_wait.py::test_a_crash_loop_ends_early_with_its_log_and_stops_kubectl",
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_text_is_that_of_the_seed",
            "tests/contract/test_check_page.py::test_each_rule_is_on_the_page",
            "tests/apiserver/engine/test_derived_state.py::test_what_was_changed_by_hand_is_exactly_what_is_healed",
            "tests/cluster/rollout/test_broken_pods.py::test_an_image_that_no_registry_has",
        ),
    ),
    Row(
        text="diagnosis: <pod> carries an image built for another platform …",
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_known_causes_are_explained",
        ),
    ),
    Row(
        text="diagnosis: the kubelet could not pull <image>.",
        page=FIX,
        below=(
            "it resolves to <image>",
            "check the push landed there and that this cluster may pull from it (credentials, network, mirror).",
        ),
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_text_is_that_of_the_seed",
            "tests/cluster/rollout/test_broken_pods.py::test_an_image_that_no_registry_has",
        ),
    ),
    Row(
        text="diagnosis: <pod> starts and exits …",
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_a_crash_shows_the_log_and_the_exit",
        ),
    ),
    Row(
        text='diagnosis: the pod\'s env references Secret "<name>" …',
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_known_causes_are_explained",
            "tests/cluster/rollout/test_broken_pods.py::test_an_env_that_references_what_is_not_there",
        ),
    ),
    Row(
        text="diagnosis: the container's configuration cannot be built …",
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_known_causes_are_explained",
            "tests/cluster/rollout/test_broken_pods.py::test_a_volume_of_what_is_not_there",
        ),
    ),
    Row(
        text="no pod matches <selector> — the ReplicaSet made none (check quota, node taints, and the selector)",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_a_rollout_without_a_pod_names_selector_and_reason",
            "tests/cluster/rollout/test_broken_pods.py::test_a_pod_that_may_not_be_made",
        ),
    ),
    Row(
        text="error: <layer>: rollout reported success, but the running pod carries <images> — expected <image>. The cluster is serving code this converge did not deploy; `kubectl -n <namespace> rollout restart deploy` and re-run `jr2 up` to resolve it.",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/rollout/test_rollout_wait.py::test_another_image_in_a_complete_rollout_is_an_error",
            "tests/cluster/rollout/test_images.py::test_a_pod_that_carries_another_image_is_an_error",
        ),
    ),
    Row(
        text="<layer>: WARNING — rollout succeeded but no pod matched <selector> (nothing verified)",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/rollout/test_rollout_wait.py::test_a_rollout_that_no_pod_proves_says_so_and_goes_on",
            "tests/cluster/rollout/test_broken_pods.py::test_a_rollout_with_no_pod_verifies_nothing_and_says_so",
        ),
    ),
    Row(
        text="refusing: after <n>s the Orchestrator still reads an older <maps> from its mount — the kubelet has not refreshed it; nothing was published, and the previous Assembly is still current. Run `jr2 up` again",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/steps/test_steps.py::test_nothing_is_published_while_the_maps_are_older",
        ),
    ),
    Row(
        text="refusing: the Orchestrator refused Assembly <hash> (HTTP <status>): <error> — the previous Assembly is still current",
        page=CONVERGE,
        tests=("tests/unit/infra/steps/test_steps.py::test_a_refused_assembly_lists_its_problems",),
    ),
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
