"""Certificates are renewed while the cluster runs, and nothing is started again for it."""

from __future__ import annotations

import base64
import datetime
import secrets
import socket
import ssl
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from jr2_cli.local_cluster import layout
from jr2_cli.local_cluster.definition import certificates
from jr2_cli.local_cluster.supervision import plan
from tests.waiting import LIMIT, wait_for

from .conftest import Machine, Witness, run

pytestmark = pytest.mark.cluster

SERVERS = {
    "kube-apiserver": (layout.NODE_ADDRESS, layout.API_PORT),
    "kubelet": (layout.NODE_ADDRESS, layout.KUBELET_PORT),
    "kube-scheduler": ("127.0.0.1", layout.SCHEDULER_PORT),
    "kube-controller-manager": ("127.0.0.1", layout.CONTROLLER_MANAGER_PORT),
    "etcd": ("127.0.0.1", layout.ETCD_PORT),
}


def served(files: layout.Layout, name: str) -> int | None:
    """The serial number of the certificate that a server shows; `None` while it shows none."""
    subject = next(s for s in certificates.SUBJECTS if s.file == name)
    context = ssl.create_default_context(cafile=files.certificate(subject.authority))
    client = "etcd-client" if name == "etcd" else "bootstrap"
    context.load_cert_chain(files.certificate(client), files.key(client))
    try:
        with (
            socket.create_connection(SERVERS[name], LIMIT) as connection,
            context.wrap_socket(connection, server_hostname=SERVERS[name][0]) as secure,
        ):
            shown = secure.getpeercert(binary_form=True)
    except OSError:
        return None
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def on_disk(files: layout.Layout, name: str) -> int:
    return x509.load_pem_x509_certificate(files.certificate(name).read_bytes()).serial_number


def test_old_certificates_are_renewed_without_a_restart(running: Machine, witness: Witness) -> None:
    files = layout.Layout()
    container, pids = witness.container(), running.pids()
    now = datetime.datetime.now(datetime.UTC)
    # Certificates that were made ten months ago, with two months left.
    certificates.ensure_certificates(files, now - datetime.timedelta(days=300))
    old = {name: on_disk(files, name) for name in SERVERS}
    work = plan.Plan.model_validate_json(files.plan.read_bytes())

    run(*work.chores[0].argv)

    assert all(on_disk(files, name) != old[name] for name in SERVERS)
    for name in SERVERS:
        wait_for(
            f"{name} shows its new certificate",
            lambda name=name: served(files, name) == on_disk(files, name),  # type: ignore[misc]
        )
    user = yaml.safe_load(Path(running.kubeconfig).read_text())["users"][0]["user"]
    held = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    assert held.serial_number == on_disk(files, "admin")
    assert held.not_valid_after_utc - now > datetime.timedelta(days=360)
    witness.note(f"note-{secrets.token_hex(4)}")
    assert running.pids() == pids
    assert witness.container() == container
