"""`jr2 check`: its order, its lines, and what it finds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2 import Config
from jr2.errors import Jr2Error
from jr2_infra import check
from jr2_infra.facts import kit
from jr2_infra.facts.instance import ReadInstance

if TYPE_CHECKING:
    from tests.reporter import Reporter
    from tests.unit.infra.conftest import MakeInstance

PROJECT = '[tool.jr2]\ntypecheck = "ty"\n'
WORKFLOW = """\
from jr2 import Context, Machine

class Ctx(Context):
    pass

m = Machine("one", context=Ctx, start=lambda i: Ctx())
m.state("waiting", initial=True)
machine = m.build()
"""
MARKERS = "<!-- jr2-docs:start --><!-- jr2-docs:end -->"


def put_checker(root: Path, code: int = 0) -> None:
    program = root / ".venv" / "bin" / "ty"
    program.write_text(f"#!/bin/sh\necho said\nexit {code}\n")
    program.chmod(0o755)


def test_a_right_instance(make_instance: MakeInstance, said: Reporter) -> None:
    root = make_instance(
        {
            "pyproject.toml": PROJECT,
            "AGENTS.md": MARKERS,
            "jr2_config.py": "from jr2 import Config, Sandbox, Size\nconfig = Config(name='inst', "
            "sandbox=Sandbox(resources=Size(memory='0.9Gi')))\n",
            "workflows/one.py": WORKFLOW,
        }
    )
    put_checker(root)

    found = check.check(root, said)

    assert said.lines == [
        'warning: sandbox.resources.memory "0.9Gi" is not a whole number of bytes: Kubernetes '
        'keeps it as 966367641600m — write "966367642"',
        "typecheck: ty (the instance's own checker)",
    ]
    assert (found.name, found.root) == ("inst", root)
    assert [workflow.name for workflow in found.workflows] == ["one"]
    assert found.kit_version == kit.COMMAND_VERSION
    assert found.interpreter == root / ".venv/bin/python"
    assert not found.composes_sandbox
    assert not found.menu_only_agents
    assert (root / "AGENTS.md").read_text() == MARKERS


def test_up_brings_the_block_to_the_kit_before_it_reads_the_config(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = make_instance({"AGENTS.md": MARKERS, "jr2_config.py": "1 / 0"})

    with pytest.raises(Jr2Error):
        check.open_instance(root, said)

    assert said.lines == [f"AGENTS.md: jr2 block updated for {kit.COMMAND_VERSION}"]


def test_up_goes_on_after_a_bad_pair_of_markers(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = make_instance({"AGENTS.md": "<!-- jr2-docs:end -->"})

    opened = check.open_instance(root, said)

    assert opened.name == "my-instance"
    assert said.lines == [
        "warning: AGENTS.md: it holds <!-- jr2-docs:end --> and no <!-- jr2-docs:start -->, so the "
        "jr2 block was not updated"
    ]


def test_the_first_refusal_of_the_order_wins(make_instance: MakeInstance, said: Reporter) -> None:
    """Each file is wrong; one after the other is mended, and the next one is named."""
    root = make_instance(
        {
            "pyproject.toml": PROJECT,
            "jr2_config.py": "x = 1\n",
            "workflows/a.py": "1 / 0\n",
            "workflows/b.py": "machine = 1\n",
        }
    )
    interpreter = root / kit.INTERPRETER
    target = os.readlink(interpreter)
    interpreter.unlink()

    def printed() -> str:
        with pytest.raises(Jr2Error) as raised:
            check.check(root, said)
        return raised.value.printed.splitlines()[0]

    assert printed() == "error: Kit version mismatch — an Instance has one (ADR-0056):"
    interpreter.symlink_to(target)
    assert printed() == f'error: {root}/jr2_config.py has no "config" (use `config = Config(…)`)'
    (root / "jr2_config.py").write_text("from jr2 import Config\nconfig = Config()\n")
    assert printed().startswith("error: this instance's type checker (ty) is missing")
    put_checker(root, code=1)
    assert printed().startswith("refusing: this instance does not typecheck")
    put_checker(root)
    assert printed().startswith('error: workflow "a": workflows/a.py did not load')
    (root / "workflows" / "a.py").write_text(WORKFLOW)
    assert printed().startswith('refusing: workflow "b": `machine` is an object of type int')


ENTRY = (
    "an entry is { match, token?, ssh_key?, push?: { ssh_key } | { token }, "
    "sign?: { ssh_key | gpg_key, name, email }, committer?: { name, email } } (ADR-0051)"
)


@pytest.mark.parametrize(
    ("fields", "said_of_it"),
    [
        (
            'git=Git(credentials=[GitCredential(match="*"), GitCredential(match="*", ssh_key=3)])',
            f"at git.credentials[1].ssh_key: must be a string — {ENTRY}",
        ),
        (
            'git=Git(credentials=[GitCredential(match="*", push=GitPush())])',
            f"at git.credentials[0].push: needs exactly one of ssh_key or token — {ENTRY}",
        ),
        (
            'secrets=[Secret("lower", value="x")]',
            "at secrets[0].name: must match ^[A-Z_][A-Z0-9_]*$",
        ),
        (
            'sandbox=Sandbox(tolerations=[Toleration(effect="No")])',
            "at sandbox.tolerations[0].effect: must be 'NoSchedule', 'PreferNoSchedule' or "
            "'NoExecute'",
        ),
        (
            'sandbox=Sandbox(resources=Size(memory="1GB"))',
            'at sandbox.resources.memory: "1GB" is not a Kubernetes quantity — write "1G" or "1Gi"',
        ),
        (
            'priority_classes=PriorityClasses(control="")',
            "at priority_classes.control: must not be empty",
        ),
        (
            'harness=Harness(provider=Provider(id="local", api="x"))',
            "at harness.provider.base_url: is required",
        ),
    ],
)
def test_a_wrong_field_is_named_by_its_place(
    make_instance: MakeInstance, said: Reporter, fields: str, said_of_it: str
) -> None:
    config = f"from jr2 import *\n\nconfig = Config({fields})\n"
    root = make_instance({"pyproject.toml": PROJECT, "jr2_config.py": config})

    with pytest.raises(Jr2Error) as raised:
        check.check(root, said)

    assert raised.value.printed == f"error: {root}/jr2_config.py {said_of_it}"


@pytest.mark.parametrize(
    ("version", "checkout", "mirror", "refused"),
    [
        ("1.0.0.dev0", None, None, True),
        ("1.0.0.dev0", Path("/checkout"), None, False),
        ("1.0.0.dev0", None, "mirror.example", False),
        ("1.0.0", None, None, False),
    ],
)
def test_a_version_between_releases_needs_its_images(
    tmp_path: Path,
    version: str,
    checkout: Path | None,
    mirror: str | None,
    refused: bool,
) -> None:
    root, config = tmp_path, Config(kit_registry=mirror)
    between = check.OpenInstance(
        root=root,
        name="my-instance",
        config=config,
        read=ReadInstance(config=config, workflows=(), problems=()),
        kit_version=version,
        checkout=checkout,
    )

    text = (
        "this jr2 is 1.0.0.dev0, a version between releases: ghcr.io/snapwich holds no Kit images "
        "for it — install a released version, use an editable install of a checkout, which builds "
        f"its own, or set kit_registry in {root}/jr2_config.py to a mirror that holds them "
        "(ADR-0044)"
    )
    assert check.unreleased(between) == (text if refused else None)


def test_secrets_are_judged_without_their_values(
    make_instance: MakeInstance, said: Reporter
) -> None:
    """`jr2 check` runs without credentials, so a value that is not set is no fault of it."""
    config = (
        "import os\nfrom jr2 import Config, Harness, EnvVar, Secret\n"
        "config = Config(secrets=[Secret('A_KEY', value=os.environ.get('A_KEY'), "
        "hosts=['a.example'{}])], harness=Harness(env=[EnvVar('AWS_PROFILE', value='x')]))\n"
    )
    root = make_instance(
        {
            "pyproject.toml": PROJECT,
            "jr2_config.py": config.format(", 'http://b.example'"),
            "workflows/one.py": WORKFLOW,
        }
    )
    put_checker(root)

    with pytest.raises(Jr2Error) as raised:
        check.check(root, said)

    assert raised.value.printed == (
        f'error: {root}/jr2_config.py at secrets[0].hosts[1]: "http://b.example" is no https URL, '
        "and a secret is sent over https alone (ADR-0059)"
    )
    assert said.lines[-1].startswith("warning: harness.env[0]: AWS_PROFILE signs requests")
    (root / "jr2_config.py").write_text(config.format(""))
    check.check(root, said)
