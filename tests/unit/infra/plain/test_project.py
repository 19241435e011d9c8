"""The files that plain Pulumi reads in the checkout."""

from __future__ import annotations

from pathlib import Path

import yaml

from jr2_infra.plan import PROJECT
from jr2_infra.program import KubernetesProvider

CHECKOUT = Path(__file__).resolve().parents[4]


def test_the_project_is_the_one_of_jr2_up_and_runs_the_program_of_infra() -> None:
    project = yaml.safe_load((CHECKOUT / "Pulumi.yaml").read_text())

    assert project["name"] == PROJECT
    assert project["runtime"]["name"] == "python"
    assert (CHECKOUT / project["main"] / "__main__.py").is_file()


def test_the_plugin_is_told_the_cluster_and_no_credential() -> None:
    inputs = KubernetesProvider(context="c", cluster="uid").inputs()

    assert (inputs["context"], inputs["clusterIdentifier"]) == ("c", "uid")
    assert "kubeconfig" not in inputs
    # Without these two a Secret that changes is replaced, and one that exists is an error.
    assert (inputs["enableSecretMutable"], inputs["upsertExistingObjects"]) == ("true", "true")
