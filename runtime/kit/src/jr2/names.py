"""Every name that two parts of jr2 must agree on: labels, objects, keys, ports, paths, routes.

A name stands here once. The Converge writes an object under it, a runtime service reads it, and
`tests/contract/test_names.py` finds a source that spells it a second time.

Source: spec/converge.md §5 and §14, spec/runtime.md §0, design §5.2 and §6.3.
"""

from __future__ import annotations

from typing import Final

KIT_VERSION: Final = "1.0.0.dev0"
"""The one version of all distributions; it is the tag of each Kit image."""

KIT_HOME: Final = "ghcr.io/snapwich"
"""Where released Kit images are pulled from when `kit_registry` is not set."""

KIT_PLATFORMS: Final = ("linux/amd64", "linux/arm64")
"""The platforms that the Kit releases images for."""

MINIMUM_KUBERNETES: Final = (1, 35)

# --- the Instance folder ----------------------------------------------------------------------
CONFIG_FILE: Final = "jr2_config.py"
WORKFLOWS_DIR: Final = "workflows"
CHARTS_DIR: Final = "charts"
ENV_FILE: Final = ".env"
AGENTS_FILE: Final = "AGENTS.md"

# --- labels and annotations -------------------------------------------------------------------
LABEL_INSTANCE: Final = "jr2.dev/instance"
LABEL_VERSION: Final = "jr2.dev/version"
LABEL_CONTENT_HASH: Final = "jr2.dev/content-hash"
"""On a Kit image of a checkout: the SHA-256 of what went in, whose beginning is its tag."""
LABEL_KIND: Final = "jr2.dev/kind"
"""On an image that jr2 built: what it is for; only such an image is ever removed."""
KIND_KIT: Final = "kit"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "jr2"
LABEL_APP: Final = "app"
ANNOTATION_IMAGES: Final = "jr2.dev/images"
ANNOTATION_HELD_DIGEST: Final = "jr2.dev/held-digest"
"""On the pod template of the Instance Harness: what its containers read at their start."""
ANNOTATION_VALUES_DIGEST: Final = "jr2.dev/values-digest"
"""On the Orchestrator's pod template: new values of its Secret start the pod once."""
ANNOTATION_MADE: Final = "jr2.dev/made"
"""On the Namespace of an Instance: which objects in it a converge made, by uid (ADR-0154)."""
ANNOTATION_MARK: Final = "jr2.dev/mark"
"""On such an object: what tells one that a killed converge made from one that looks like it."""

FIELD_MANAGER: Final = "jr2"
"""The server-side apply manager of everything that the Converge writes."""
RECORD_MANAGER: Final = "jr2-made"
"""The field manager of `ANNOTATION_MADE`: no apply of the Namespace takes it away."""

# --- the Instance's namespace -----------------------------------------------------------------
ORCHESTRATOR: Final = "jr2-orchestrator"
"""Deployment, Service, ServiceAccount, Role, RoleBinding and Secret of the Orchestrator."""
STATE_CLAIM: Final = "jr2-state"
STATE_CLAIM_SIZE: Final = "1Gi"
INSTANCE_SECRET: Final = "jr2-instance"
KEY_INSTANCE_TOKEN: Final = "JR2_INSTANCE_TOKEN"
KEY_PUBLISH_TOKEN: Final = "JR2_PUBLISH_TOKEN"
KEY_SIGNING_KEY: Final = "JR2_SIGNING_KEY"
KEY_INSTANCE_HARNESS_TOKEN: Final = "JR2_INSTANCE_HARNESS_TOKEN"
FILE_INSTANCE_TOKEN_DIGEST: Final = "instance-token.sha256"
FILE_PUBLISH_TOKEN_DIGEST: Final = "publish-token.sha256"
FILE_SIGNING_KEY: Final = "signing-key"
IMAGES_MAP: Final = "jr2-images"
IMAGES_KEY: Final = "images.json"
HELD_MAP: Final = "jr2-held"
HELD_KEY: Final = "held.json"
HELD_BOOTSTRAP_KEY: Final = "envoy.json"
HELD_SCRIPT_KEY: Final = "custodian.lua"
HARNESS_MAP: Final = "jr2-harness"
HARNESS_KEY: Final = "harness.json"
HARNESS_ENV_SECRET: Final = "jr2-harness-env"
HELD_SECRETS: Final = "jr2-held-secrets"
"""The values of held secrets that the config gives, each under its name; for Custodians alone."""
HELD_TLS: Final = "jr2-held-tls"
"""A certificate and its key for each bound host; for Custodians alone."""
HELD_CA: Final = "jr2-held-ca"
"""The authority of those certificates with its key; no pod mounts it."""
EFFECT_SECRETS: Final = "jr2-effect-secrets"
"""The values of Effect secrets that the config gives, each under its name; for Effectors alone."""
GIT_SECRET_PREFIX: Final = "jr2-git-"
"""Of the Secret with the token of an entry of `git.credentials`; a hash of its `match` follows."""
CA_MAP: Final = "jr2-ca"
KEY_CA_CERTIFICATE: Final = "ca.crt"
"""In `jr2-held-ca` the authority's certificate; in the map `jr2-ca` the user's bundle."""
KEY_CA_KEY: Final = "ca.key"
KEY_CA_EXTRA: Final = "extra.crt"
"""In `jr2-ca`: the user's bundle and the authority, for a program that adds to its own roots."""
KEY_CA_BUNDLE: Final = "bundle.crt"
"""In `jr2-ca`: public roots, the user's bundle and the authority, for one that replaces them."""
KEY_CA_UPSTREAM: Final = "upstream.crt"
"""In `jr2-ca`: public roots and the user's bundle, by which a Custodian judges a real host."""
PROVIDER_API_KEY: Final = "JR2_PROVIDER_API_KEY"
"""The name under which `harness.provider.api_key` is held."""
STAND_IN_PREFIX: Final = "jr2-held-"
RESERVED_PREFIX: Final = "JR2_"
"""What the names of jr2's own variables start with."""
GIT_USERNAME: Final = "x-access-token"
"""The user that every git host takes beside a token."""
KEY_GIT_USERNAME: Final = "username"
KEY_GIT_PASSWORD: Final = "password"
KEY_SSH_IDENTITY: Final = "identity"
KEY_SSH_PUBLIC: Final = "identity.pub"
KEY_SSH_KNOWN_HOSTS: Final = "known_hosts"
KEY_GPG: Final = "git.asc"
"""The key of a Secret that signs by GPG, as Flux names it."""
SANDBOX_INGRESS: Final = "jr2-sandbox-ingress"
INSTANCE_HARNESS: Final = "jr2-instance-harness"
INSTANCE_HARNESS_PODS: Final = "jr2-instance-harness-pods"
"""The headless Service that a StatefulSet names; nobody dials it."""
INSTANCE_EFFECTOR: Final = "jr2-instance-effector"
"""Deployment, Service and Secret of the Instance Effector."""
INSTANCE_EFFECTOR_INGRESS: Final = "jr2-instance-effector-ingress"
REPO_CACHE: Final = "jr2-repo-cache"
"""DaemonSet, ServiceAccount, Role and RoleBinding of the Repo cache."""
INSTANCE_HARNESS_INGRESS: Final = "jr2-instance-harness-ingress"
ORCHESTRATOR_INGRESS: Final = "jr2-orchestrator-ingress"
LABEL_SANDBOX_NAME: Final = "sandbox.jr2.dev/name"
CONVERGE_LEASE: Final = "jr2-converge"

# --- shared by the Instances of a cluster -----------------------------------------------------
SYSTEM_NAMESPACE: Final = "jr2-system"
OPERATOR: Final = "jr2-controller-manager"
SECRETS_POLICY: Final = "jr2-orchestrator-secrets"
"""The admission policy on what an Orchestrator may write of Secrets, and its binding."""
LABEL_SANDBOX: Final = "jr2.dev/sandbox"
"""On the Secret with the token of a Sandbox: the Sandbox."""
OPERATOR_ROLE: Final = "jr2-manager-role"
OPERATOR_ROLE_BINDING: Final = "jr2-manager-rolebinding"
LABEL_CONTROL_PLANE: Final = "control-plane"
CONTROL_PLANE: Final = "controller-manager"
PRIORITY_CONTROL: Final = "jr2-control"
PRIORITY_CONTROL_VALUE: Final = 100_000
PRIORITY_SANDBOX: Final = "jr2-sandbox"
PRIORITY_SANDBOX_VALUE: Final = 1_000
API_GROUP: Final = "core.jr2.dev"
API_VERSION: Final = "v1alpha1"
SANDBOXES_CRD: Final = "sandboxes.core.jr2.dev"
REPOS_CRD: Final = "repos.core.jr2.dev"

# --- images -----------------------------------------------------------------------------------
IMAGE_ORCHESTRATOR: Final = "jr2-orchestrator"
IMAGE_HARNESS: Final = "jr2-harness"
IMAGE_OPERATOR: Final = "jr2-operator"
IMAGE_PYTHON: Final = (3, 11)
"""The Python of the Kit images, as a wheel and a syntax tree name it."""
IMAGE_PYTHON_RELEASE: Final = "3.11.2"
"""Its full version, which is Debian's."""
CONTAINERD_NAMESPACE: Final = "k8s.io"
"""Where the kubelet's images are in containerd."""
CHECKOUT_HOME: Final = "jr2.local"
"""The registry part of Kit images that were built from a checkout and imported, never pulled."""
CUSTODIAN_IMAGE: Final = (
    "docker.io/envoyproxy/envoy:distroless-v1.39.1"
    "@sha256:eb2c01c13125d1629637cb4e4cce7207009fb7cc2c8027f9742758549d15b6f4"
)

# --- inside the Orchestrator's pod ------------------------------------------------------------
ORCHESTRATOR_PORT: Final = 4000
OPERATOR_HEALTH_PORT: Final = 8081
CONTAINER_ORCHESTRATOR: Final = "orchestrator"
CONTAINER_WORKER: Final = "worker"
ORCHESTRATOR_UID: Final = 10_001
WORKER_UID: Final = 10_002
OPERATOR_UID: Final = 10_003
HARNESS_UID: Final = 1_000
"""Of the Harness image, and of a Sandbox Image that names no user."""
CUSTODIAN_UID: Final = 10_004
EFFECTOR_UID: Final = 10_005
STATE_GROUP: Final = 10_000
"""fsGroup of the pod: the store's owner writes Assemblies, the worker only reads them."""
STATE_PATH: Final = "/instance/.jr2"
"""Where the state volume is mounted in the container `orchestrator`."""
STATE_DATABASE: Final = "state.db"
ASSEMBLIES_DIR: Final = "assemblies"
"""Folder on the state volume, and the subPath that the container `worker` mounts read-only."""
WORKER_ASSEMBLIES_PATH: Final = "/assemblies"
SOCKET_DIR: Final = "/run/jr2"
WORKER_SOCKET: Final = "/run/jr2/worker.sock"
VALUES_PATH: Final = "/etc/jr2/values"
"""Where the Secret `jr2-orchestrator` is mounted in the container `orchestrator`."""
TREE_PATH: Final = "/opt/jr2"
"""In the Harness image, and where it is mounted in a Sandbox: the tree that runs in any image."""
TREE_SUBPATH: Final = "opt/jr2"
"""The subPath of the image volume."""
TREE_PYTHON: Final = "/opt/jr2/bin/python3"
TREE_GIT: Final = "/opt/jr2/bin/git"
TREE_RIPGREP: Final = "/opt/jr2/bin/rg"
TREE_INIT: Final = "/opt/jr2/bin/tini"
KIT_PATH: Final = "/opt/jr2/kit"
"""In the Kit images: the closure of the distribution `jr2`, and nothing else."""
SERVICES_PATH: Final = "/opt/jr2/services"
"""In the Kit images: the services and what they need beside the Kit."""

# --- headers of the Orchestrator's routes --------------------------------------------------------
HEADER_KIT_VERSION: Final = "X-JR2-Kit-Version"
"""On a publish: the Kit version that the Assembly is for; another one is refused unread."""
HEADER_LEASE: Final = "X-JR2-Lease"
"""On a publish: a `jr2.wire.LeaseStamp` of the converge Lease; an older one is refused."""
HEADER_IF_GATE: Final = "If-Gate"
"""On a Gate's event: the entry into the Gate that the sender saw."""

HEADER_IDEMPOTENCY_KEY: Final = "Idempotency-Key"
"""On each write: a repeat under the same key is answered as the first was, and done once."""

HEADER_NONCE: Final = "X-JR2-Nonce"
"""On `/healthz`: a text of the sender, which the answer's `proof` signs."""

# --- what one Run may carry -----------------------------------------------------------------------
MAX_EVENT: Final = 256 * 2**10
"""Bytes of one event's payload, of a run's input and of a task's output, as JSON."""
MAX_SNAPSHOT: Final = 2**20
"""Bytes of a run's snapshot, and of what is shown of it."""
MAX_TASKS: Final = 1024
"""Tasks of user code that run at once; the others wait, and the runs take turns."""
MAX_TASKS_OF_RUN: Final = 256
"""How many of them are of one run."""
MAX_TASKS_BYTES: Final = 16 * 2**20
"""Bytes of the inputs of those that run; a larger one runs alone."""

LAUNCHER_ORCHESTRATOR: Final = "/opt/jr2/bin/jr2-orchestrator"
LAUNCHER_WORKER: Final = "/opt/jr2/bin/jr2-worker"
LAUNCHER_OPERATOR: Final = "/opt/jr2/bin/jr2-operator"
LAUNCHER_REPO_CACHE: Final = "/opt/jr2/bin/jr2-repo-cache"
LAUNCHER_HARNESS: Final = "/opt/jr2/bin/jr2-harness"
LAUNCHER_EFFECTOR: Final = "/opt/jr2/bin/jr2-effector"
SERVICE_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod finds its token, its namespace and the cluster's certificate authority."""

# --- the parts that come and go -----------------------------------------------------------------
HARNESS_PORT: Final = 8080
EFFECTOR_PORT: Final = 8090
CUSTODIAN_CONTROL_PORT: Final = 8081
CUSTODIAN_EGRESS_PORT: Final = 15_001
CUSTODIAN_HEALTH_PORT: Final = 15_021
REPO_CACHE_HEALTH_PORT: Final = 8081
CONTAINER_HARNESS: Final = "harness"
CONTAINER_CUSTODIAN: Final = "custodian"
CONTAINER_EFFECTOR: Final = "effector"
CONTAINER_REPO_CACHE: Final = "agent"
WORK_GROUP: Final = 2_000
"""fsGroup of a Harness pod: what its containers share, they share as this group."""
CONVERSATIONS_PATH: Final = "/conversations"
CONVERSATIONS_CLAIM: Final = "jr2-conversations"
CONVERSATIONS_CLAIM_SIZE: Final = "1Gi"
EFFECTOR_VALUES_PATH: Final = "/etc/jr2/effector"
REPO_CACHE_PATH: Final = "/cache"
REPO_STORE: Final = "/var/lib/jr2"
"""On a node: below it has each namespace the folder of its Repo cache."""
REPO_STORE_FOLDER: Final = "repos"
"""The folder of a Repo cache, below the namespace in the store."""

# --- the kubectl contexts that jr2 knows ------------------------------------------------------
LOCAL_CONTEXT: Final = "jr2-local"
KIND_PREFIX: Final = "kind-"

# --- environment ------------------------------------------------------------------------------
ENV_NAMESPACE: Final = "JR2_NAMESPACE"
ENV_NODE_NAME: Final = "JR2_NODE_NAME"
ENV_HARNESS_JSON: Final = "JR2_HARNESS_JSON"
ENV_HARNESS_TOKEN_DIGEST: Final = "JR2_HARNESS_TOKEN_SHA256"
ENV_MENU_ONLY: Final = "JR2_MENU_ONLY"
ENV_CONVERSATIONS: Final = "JR2_CONVERSATIONS_DIR"
ENV_CUSTODIAN_URL: Final = "JR2_CUSTODIAN_URL"
ENV_SANDBOX_TOKEN: Final = "JR2_SANDBOX_TOKEN"
ENV_SANDBOX: Final = "JR2_SANDBOX"
ENV_RESTORE: Final = "JR2_RESTORE"
"""On the container `orchestrator`: the backup to restore the store from, once."""
ENV_URL: Final = "JR2_URL"
ENV_TOKEN: Final = "JR2_TOKEN"
ENV_HANDOFF_FROM: Final = "JR2_HANDOFF_FROM"
ENV_TRACEBACK: Final = "JR2_TRACEBACK"
"""Set to anything: an unknown failure of the command is printed with its trace."""

# --- an Assembly's folder ---------------------------------------------------------------------
ASSEMBLY_MANIFEST: Final = "assembly.json"
"""At the Assembly's root: Kit version, Instance name, platform, Python, Workflow names."""
ASSEMBLY_INSTANCE: Final = "instance"
"""Below the Assembly's root: the Instance's own files."""
ASSEMBLY_PACKAGES: Final = "packages"
"""Below the Assembly's root: its locked dependencies, without the Kit's."""
MAX_ASSEMBLY_LISTING: Final = 8 * 2**20
"""Bytes of the list of an Assembly's files."""
MAX_BUNDLE: Final = 8 * 2**20
"""Bytes of the blobs that one request carries together, unpacked."""
MAX_ASSEMBLY_BYTES: Final = 2**30
MAX_ASSEMBLY_FILES: Final = 20_000
SHORT_HASH: Final = 12
"""How many hex digits of a content hash are shown and stand in tags."""
