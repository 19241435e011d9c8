"""One converge against the cluster: from the first contact to the last line of the publish.

Everything is read and decided first. When the cluster is already as the plan wants it, nothing is
written and the engine is not started; the lines are the same. Otherwise the run takes the Lease,
reads the cluster again, and hands the program to the engine.

This module loads what speaks to a cluster; `converge` loads it while the Instance is walked.

Source: seed 000 (What jr2 up does, steps 5–14), design §5.1 and §5.2, spec/converge.md §4.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx2

from jr2 import names, rbac
from jr2.errors import Aborted, Jr2Error, StepFailed

from . import assembly, crds, git, kube, made, rules, user_home
from . import converge as converge_state
from .access import moments
from .api import Api, ApiError, words
from .closed_list import NAMESPACE, SECRET
from .components import images, secrets
from .components.namespace import namespace as namespace_object
from .engine import run_file
from .facts import cluster as cluster_facts
from .facts import holding
from .facts.cluster import Contact
from .facts.images import ImageFacts, read_images
from .facts.instance import InstanceFacts
from .graph import PUBLISH
from .images import delivery
from .images.checkout import checkout_images
from .images.delivery import Delivery
from .images.delivery.kind import KindCluster
from .images.delivery.local import LocalNode
from .images.delivery.registry import Pushed
from .images.needed import Needs, decide_images
from .leases import Leases, held_leases
from .objects import Wants
from .parts import PartsWanted
from .plan import ConvergePlan, make_plan
from .report import Prompter, Reporter, line_code
from .rollout import restart
from .rules import KitRefs, Ownership, Place
from .secrets.certificates import Certificates
from .secrets.decided import SecretWants
from .seen import Seen, plan_under
from .steps import surroundings
from .tooling import FindPrograms, FindTooling, Programs, Tooling

_ACCOUNT_SECONDS: Final = 10.0


def converge(
    place: Place,
    instance: InstanceFacts,
    *,
    yes: bool,
    force: bool,
    find_tooling: FindTooling,
    reporter: Reporter,
    prompter: Prompter,
) -> tuple[str, ...]:
    """Do steps 4 to 14, and return what is still to be said after `converged`.

    Args:
        place: where.
        instance: what the folder says.
        yes: answer yes to the question of the first contact.
        force: build each image again.
        find_tooling: says where the programs are; asked before the first write.
        reporter: where the lines go.
        prompter: asks where an ssh key comes from.

    Raises:
        Jr2Error: the refusal or the error, as it is printed.
    """
    staged = assembly.stage(instance)
    context = reach(place)
    with context.http() as http:
        session = Session(
            place,
            instance,
            yes=yes,
            force=force,
            context=context,
            http=http,
            find_tooling=find_tooling,
            reporter=reporter,
        )
        return session.run(staged, prompter)


def reach(place: Place) -> kube.KubeContext:
    """Return the context that a converge speaks to.

    Raises:
        Refusal: the kubeconfig has no such context.
    """
    try:
        return kube.load_context(place.context)
    except kube.UnknownContext as error:
        raise kube.unreachable(place.context, error.printed) from error


class Session:
    """One run, from the first contact on.

    Args:
        place: where.
        instance: what the folder says.
        yes: answer yes to the question of the first contact.
        force: build each image again.
        context: the kubectl context.
        http: the API server of that context.
        find_tooling: says where the programs are; asked before the first write.
        reporter: where the lines go.
        writes: whether this run may write; a preview may not, and so does not make the namespace.
    """

    def __init__(
        self,
        place: Place,
        instance: InstanceFacts,
        *,
        yes: bool,
        force: bool,
        context: kube.KubeContext,
        http: httpx2.Client,
        find_tooling: FindPrograms,
        reporter: Reporter,
        writes: bool = True,
    ) -> None:
        self._writes = writes
        self._place = place
        self._instance = instance
        self._yes = yes
        self._force = force
        self._context = context
        self._http = http
        self._api = Api(http)
        self._find_tooling = find_tooling
        self._reporter = reporter
        self._minted = secrets.mint_values()
        self._certificates = Certificates()
        self._marks = made.Marks()
        self._tooling: Programs
        self._made_namespace = False

    @functools.cached_property
    def _parts(self) -> PartsWanted:
        """The parts that come and go, as the Machines of the Instance need them."""
        instance = self._instance
        return PartsWanted.of(instance.config, (workflow.parts for workflow in instance.workflows))

    def run(self, staged: assembly.StagedAssembly, prompter: Prompter) -> tuple[str, ...]:
        """Converge, and return what is still to be said after `converged`.

        Args:
            staged: the Assembly of the Instance.
            prompter: asks where an ssh key comes from.

        Raises:
            Jr2Error: the refusal or the error, as it is printed.
        """
        seen = self._with_keys(self.look(staged), prompter)
        plan = seen.plan
        if plan.is_proved:
            self._say(plan.standing_lines())
            return ()
        self.check_rights(plan)
        with held_leases(self._http, self._reporter) as leases:
            own = leases.hold(self._place.namespace)
            plan = plan_under(leases, plan, lambda: self.look_again(seen))
            self._say(plan.drift)
            if plan.is_proved:
                self._say(plan.standing_lines())
                return ()
            written = self.write_down(plan)
            if not plan.differences:
                self._say(plan.standing_lines())
                return ()
            try:
                self._engine(plan, leases, own.stamp.header(), seen.staged)
            except Jr2Error:
                self._say_lost(seen.wants.git.keys)
                raise
            self.settle(plan, written)
        return tuple(
            line
            for key in seen.wants.git.keys
            if key.generated and plan.makes(SECRET, key.secret)
            for line in git.reminder(key)
        )

    def say(self, plan: ConvergePlan) -> None:
        """Say what is left out, and warn."""
        self._say(plan.lines)
        for text in plan.warnings:
            self._reporter.warning(text, code="git")

    def _with_keys(self, seen: Seen, prompter: Prompter) -> Seen:
        """Step 12: ask for the ssh keys that are missing, before the Lease is held.

        A person may take their time, and no other converge waits for it.
        """
        self.say(seen.plan)
        if not seen.plan.missing_keys:
            return seen
        # Nobody registers a key that could not be written.
        self.check_rights(seen.plan)
        keys = git.choose_keys(
            seen.plan.missing_keys,
            namespace=self._place.namespace,
            yes=self._yes,
            home=user_home.folder(),
            prompter=prompter,
            reporter=self._reporter,
        )
        wants = replace(seen.wants, git=replace(seen.wants.git, keys=keys))
        seen = replace(seen, wants=wants)
        return replace(seen, plan=self.look_again(seen))

    def write_down(self, plan: ConvergePlan) -> str:
        """Write what this converge makes, before it makes anything; return the text.

        Args:
            plan: what is done, made under the Lease.

        Raises:
            StepFailed: it cannot be written.
        """
        converge_state.begin_to_write()
        return made.keep(
            self._api, self._place.namespace, plan.making.record, over=plan.making.found
        )

    def settle(self, plan: ConvergePlan, written: str) -> None:
        """Write which objects this converge made, once all of them stand.

        A run that ends before this leaves their marks, and the next one writes down their uids.

        Args:
            plan: what was done.
            written: the text that `write_down` gave.

        Raises:
            StepFailed: the cluster cannot be read, or the record not be written.
        """
        record, namespace = plan.making.record, self._place.namespace
        if record.pending or plan.surplus:
            live = self._read_cluster().live
            made.keep(self._api, namespace, made.settled(record, live, namespace), over=written)

    def _say_lost(self, keys: Sequence[git.DeployKey]) -> None:
        """Warn of fresh keys whose Secret was not made: somebody may have registered one."""
        for key in keys:
            if not key.generated:
                continue
            with contextlib.suppress(ApiError, httpx2.HTTPError):
                if self._api.get(SECRET.path(self._place.namespace, key.secret)) is None:
                    self._reporter.warning(git.lost(key), code="git-ssh")

    def look(self, staged: assembly.StagedAssembly) -> Seen:
        """Do steps 5 to 8, read the cluster, and plan.

        Args:
            staged: the Assembly of the Instance.

        Raises:
            Jr2Error: the refusal or the error, as it is printed.
        """
        with ThreadPoolExecutor(max_workers=4) as pool:
            naming = pool.submit(self._refs)
            contact = cluster_facts.read_contact(
                self._api,
                self._place.context,
                self._place.namespace,
                with_nodes=self._instance.config.platforms is None,
            )
            self._first_contact(contact)
            # Without a namespace there is no place for the probe, and a preview makes none.
            probed = self._writes or contact.namespace is not None
            probe = pool.submit(self._keeps_pod_resources) if probed else None
            reading = pool.submit(self._read_cluster)
            if probe is not None:
                self._pod_resources(contact, probe)
            refs = naming.result()
            staged = self._for_nodes(staged, self._deliverable(refs, contact))
            wants = self._wants(refs, staged)
            node_images = self._node_images(refs)
            facts = reading.result()
        plan = self._plan(wants, facts, contact, node_images)
        return Seen(contact=contact, wants=wants, refs=refs, staged=staged, plan=plan)

    def look_again(self, seen: Seen) -> ConvergePlan:
        """Read the cluster once more, under the Lease, and plan.

        What was read without a Lease may be what another run was about to change.

        Args:
            seen: the first look.

        Raises:
            Jr2Error: the refusal or the error, as it is printed.
        """
        facts = self._read_cluster()
        return self._plan(seen.wants, facts, seen.contact, self._node_images(seen.refs))

    def _read_cluster(self) -> cluster_facts.ClusterFacts:
        return cluster_facts.read_cluster(
            self._api,
            self._place.namespace,
            self._named_secrets(),
            self._secrets.named_config_maps(),
        )

    @functools.cached_property
    def _secrets(self) -> SecretWants:
        facts = self._instance
        parts = [workflow.parts for workflow in facts.workflows]
        return SecretWants.of(facts.config, parts, facts.ca_bundle)

    def _named_secrets(self) -> frozenset[str]:
        """Return the Secrets that the config names and somebody else keeps."""
        keys = git.named_secrets(self._instance.config.git.credentials)
        return keys | self._secrets.named_secrets()

    def _first_contact(self, contact: Contact) -> None:
        """Steps 5 and 6: the version, who owns the namespace, the question, and the programs."""
        rules.check_version(self._place, contact.version)
        owned = rules.ownership(
            self._place, contact.namespace, holding.what_holds(self._api, contact.namespace)
        )
        rules.check_pod_security(self._place, contact.namespace, repo_cache=self._parts.repo_cache)
        question = rules.first_contact(self._place, owned)
        if question and not self._yes and not self._reporter.confirm(question):
            raise Aborted(rules.ABORTED)
        # Nothing is written for a converge that cannot end well, and a missing program hides no
        # refusal.
        self._tooling = self._find_tooling()
        if owned is not Ownership.OURS and self._writes:
            absent = owned is Ownership.ABSENT
            moments.before_namespace(self._api, self._place, self._instance, absent=absent)
            self._apply_namespace(namespace_object(self._place.instance, self._place.namespace))
            self._made_namespace = True

    def check_rights(self, plan: ConvergePlan) -> None:
        """Refuse a plan that writes what nobody may write; each missing right is named."""
        moments.before_lease(
            self._api,
            self._place,
            shared=plan.writes_shared,
            made_namespace=self._made_namespace,
        )

    def _keeps_pod_resources(self) -> bool:
        """Probe; a namespace that was just made may lack its service account for a moment."""
        until = time.monotonic() + _ACCOUNT_SECONDS
        while True:
            try:
                return cluster_facts.keeps_pod_resources(self._api, self._place.namespace)
            except ApiError as error:
                if "serviceaccount" not in error.message.lower() or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _pod_resources(self, contact: Contact, probe: Future[bool]) -> None:
        """Step 7."""
        try:
            kept = probe.result()
        except (ApiError, httpx2.HTTPError) as error:
            self._reporter.warning(
                rules.unconfirmed_pod_resources(self._place, words(error)), code="pod-resources"
            )
            return
        if not kept:
            raise rules.drops_pod_resources(self._place, contact.version)

    def _for_nodes(
        self, staged: assembly.StagedAssembly, platforms: tuple[str, ...]
    ) -> assembly.StagedAssembly:
        """Stage again when native files are for the laptop's processor and not for a node's."""
        if assembly.fits(staged.manifest.platform, platforms):
            return staged
        return assembly.stage(self._instance, platform=platforms[0])

    def _deliverable(self, refs: KitRefs, contact: Contact) -> tuple[str, ...]:
        """Step 8: the platforms, the images, and whether they can reach the nodes."""
        needs = Needs(
            place=self._place,
            instance=self._instance,
            contact=contact,
            refs=refs,
            programs=self._tooling,
            server=self._context.server,
        )
        found = decide_images(needs, self._reporter)
        if self._force:
            self._say((rules.DELIVERED_AGAIN if refs.imported else rules.NOTHING_TO_BUILD,))
        return found

    def _refs(self) -> KitRefs:
        checkout = self._instance.checkout
        if checkout is None:
            return rules.released_images(
                self._instance.kit_version, self._instance.config.kit_registry
            )
        own = checkout_images(checkout)
        return rules.checkout_refs(
            self._place,
            orchestrator=own.orchestrator,
            operator=own.operator,
            harness=own.harness if self._parts.harness_image else None,
            checkout=str(checkout),
            home=rules.push_home(self._place, self._instance.config.registry),
        )

    def _node_images(self, refs: KitRefs) -> tuple[ImageFacts, ...]:
        way = self._delivery() if refs.imported else None
        if way is None:
            return ()
        needed = [refs.orchestrator, refs.operator]
        if refs.harness is not None and self._parts.harness_image:
            needed.append(refs.harness)
        found = read_images(needed, way, again=self._force)
        for item in found:
            if item.held is None and item.archived is None:
                raise rules.not_built(item.ref, str(self._instance.checkout))
        return found

    def _delivery(self) -> Delivery | None:
        """Return how images reach the nodes; `_deliverable` refused what has no way."""
        tooling, context = self._tooling, self._place.context
        if context.startswith(names.KIND_PREFIX):
            if tooling.kind is None or tooling.docker is None:
                return None
            cluster = context.removeprefix(names.KIND_PREFIX)
            return KindCluster(tooling.kind, tooling.docker, cluster)
        if context == names.LOCAL_CONTEXT:
            if tooling.local_import is None:
                return None
            return LocalNode(tooling.local_import.ctr, tooling.local_import.socket)
        home = rules.push_home(self._place, self._instance.config.registry)
        return None if home is None else Pushed(home)

    def _wants(self, refs: KitRefs, staged: assembly.StagedAssembly) -> Wants:
        config = self._instance.config
        return Wants(
            place=self._place,
            kit_version=self._instance.kit_version,
            refs=refs,
            manage_operator=config.operator.manage,
            control_class=config.priority_classes.control,
            sandbox_class=config.priority_classes.sandbox,
            custodian=images.custodian_ref(config.kit_registry),
            harness=images.harness_json(config.harness),
            assembly=staged.hash,
            workflows=tuple(staged.manifest.workflows),
            crds=tuple(crds.load()),
            operator_rules=tuple(rule.as_object() for rule in rbac.OPERATOR_RULES),
            allow_from=tuple(config.network.allow_from),
            git=git.git_wants(self._instance, os.environ),
            parts=self._parts,
            secrets=self._secrets,
        )

    def _plan(
        self,
        wants: Wants,
        facts: cluster_facts.ClusterFacts,
        contact: Contact,
        node_images: tuple[ImageFacts, ...],
    ) -> ConvergePlan:
        return make_plan(
            wants,
            facts,
            cluster_uid=contact.cluster_uid,
            node_images=node_images,
            minted=self._minted,
            certificates=self._certificates,
            marks=self._marks,
        )

    def _apply_namespace(self, obj: Mapping[str, Any]) -> None:
        converge_state.begin_to_write()
        try:
            self._api.apply(NAMESPACE, obj)
        except ApiError as error:
            raise StepFailed(
                f'cannot make namespace "{obj["metadata"]["name"]}": {error.message}'
            ) from error

    def _engine(
        self, plan: ConvergePlan, leases: Leases, stamp: str, staged: assembly.StagedAssembly
    ) -> None:
        """Hand the program to the engine, with what its providers need."""
        from .engine.folder import run_folder
        from .engine.run import run_engine

        assert isinstance(self._tooling, Tooling)
        # The next run removes a left one.
        with run_folder(Path(tempfile.gettempdir())) as folder:
            parcel = folder / "assembly"
            if any(item.resource == PUBLISH for item in plan.differences):
                assembly.write_parcel(staged.parts, parcel)
            converge_state.begin_to_write()
            run_engine(
                plan.program,
                plan.live,
                tooling=self._tooling,
                kubeconfig_text=self._context.kubeconfig_text(),
                run_settings=self.run_settings(plan, leases, stamp, staged, parcel),
                reporter=self._reporter,
                surplus=plan.surplus,
                started=leases.record_engine,
            )
        self._namespace_stays()

    @property
    def kubectl(self) -> Path:
        """Where kubectl is; known once the cluster was looked at."""
        return self._tooling.kubectl

    def run_settings(
        self,
        plan: ConvergePlan,
        leases: Leases,
        stamp: str,
        staged: assembly.StagedAssembly,
        parcel: Path,
    ) -> dict[str, str]:
        """Return what the providers of this run are told.

        Args:
            plan: what is done.
            leases: what this run holds.
            stamp: the stamp of its own Lease, which a publish carries.
            staged: the Assembly.
            parcel: the folder of what a publish sends of it.

        Raises:
            StepFailed: the API server does not say the time.
        """
        return {
            run_file.NAMESPACE: self._place.namespace,
            run_file.LEASES: run_file.leases_text(leases.nonces()),
            surroundings.SETTING_LEASE: stamp,
            surroundings.SETTING_BEGAN: self._began(),
            **delivery.delivery_settings(self._delivery()),
            **({surroundings.SETTING_FORCE: "true"} if self._force else {}),
            surroundings.SETTING_PARCEL: str(parcel),
            surroundings.SETTING_WORKFLOWS: ",".join(staged.manifest.workflows),
            surroundings.SETTING_IMAGES_DIGEST: plan.images_digest,
            surroundings.SETTING_HELD_DIGEST: plan.held_digest,
        }

    def _began(self) -> str:
        try:
            return restart.moment(self._api)
        except ApiError as error:
            raise StepFailed(f"cannot read the cluster: {error.message}") from error
        except httpx2.HTTPError as error:
            raise StepFailed(f"the API server stopped answering ({words(error)})") from error

    def _namespace_stays(self) -> None:
        """Look once more: an object that was applied to a namespace on its way out does not stay."""
        try:
            live = self._api.get(NAMESPACE.path(name=self._place.namespace))
        except (ApiError, httpx2.HTTPError) as error:
            raise StepFailed(
                f'cannot read namespace "{self._place.namespace}" after the last step: '
                f"{words(error)}"
            ) from error
        rules.check_namespace_stays(self._place, live, holding.what_holds(self._api, live))

    def _say(self, lines: tuple[str, ...]) -> None:
        for line in lines:
            self._reporter.line(line, code=line_code(line))
