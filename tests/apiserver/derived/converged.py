"""The Converge of one Instance's objects on a real API server: plan, proof and the real engine.

What needs a pod is left out of the program: images, rollouts and the publish. What heals is the
product's own: the plan, the engine with its plugins, the provider `NothingMore`, and the Lease.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2

from jr2_cli import tools
from jr2_infra import closed_list, made
from jr2_infra.api import Api
from jr2_infra.derived import Difference, LiveObject, LiveObjects, differences, key_of
from jr2_infra.engine import run_file
from jr2_infra.engine.run import EngineResult, run_engine
from jr2_infra.facts.cluster import read_cluster
from jr2_infra.lease import SystemClock
from jr2_infra.leases import held_leases
from jr2_infra.plan import ConvergePlan, make_plan
from jr2_infra.resources import DynamicResource, KubernetesResource, Program
from jr2_infra.tooling import Tooling
from tests.apiserver.derived.conftest import wait_for_definitions, world_of
from tests.apiserver.server import ApiServer
from tests.reporter import Reporter
from tests.unit.infra.converge.conftest import MINTED
from tests.waiting import LIMIT

UID = "0123456789abcdef"


class UnhurriedClock(SystemClock):
    """The machine's clock, on which five seconds without a turn are a minute and more.

    Nobody watches the Leases of these tests, and a machine that gives a turn to neither the API
    server nor the holder for so long says nothing of what they show. The fence has tests of its own.
    """

    def monotonic(self) -> float:
        """Return seconds that only grow, each of them a long one."""
        return super().monotonic() / 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the cluster.

    Args:
        plan: the whole plan.
        program: what of it needs no pod.
        found: what of the program differs.
    """

    plan: ConvergePlan
    program: Program
    found: tuple[Difference, ...]

    @property
    def live(self) -> LiveObjects:
        """The objects that the converge may touch."""
        return self.plan.live

    @property
    def surplus(self) -> tuple[LiveObject, ...]:
        """Those that the program no longer holds."""
        return self.plan.surplus

    def verdict(self) -> dict[str, str]:
        """Return what the proof says of each resource that is not as it is wanted."""
        return {item.resource: item.operation for item in self.found}


class Converged:
    """An Instance on a server.

    Args:
        server: the server; it ends with whoever made it.
        name: the Instance's name and namespace.
        kubeconfig: whose rights it has; an administrator's when it is not given.
    """

    def __init__(self, server: ApiServer, name: str, kubeconfig: Path | None = None) -> None:
        self.server = server
        self.name = name
        self.world = world_of(server, name)
        self.context = server.kube_context(kubeconfig)
        self.tooling = Tooling(
            pulumi=tools.require("pulumi"),
            kubernetes_plugin=tools.require("pulumi-resource-kubernetes"),
            kubectl=tools.require("kubectl"),
        )
        self.http: httpx2.Client = self.context.http(timeout=LIMIT)
        self.api = Api(self.http)

    def __enter__(self) -> Converged:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def look(self) -> Look:
        """Read the cluster and plan, as `jr2 up` does."""
        plan = make_plan(
            self.world.wants,
            read_cluster(
                self.api,
                self.name,
                self.world.wants.secrets.named_secrets(),
                self.world.wants.secrets.named_config_maps(),
            ),
            cluster_uid=UID,
            node_images=(),
            minted=MINTED,
            certificates=self.world.certificates,
            marks=self.world.marks,
        )
        program = _without_pods(plan.program)
        return Look(
            plan=plan,
            program=program,
            found=tuple(differences(program, plan.live, plan.surplus)),
        )

    def preview(self, look: Look) -> dict[str, str]:
        """Return what the engine says of each resource that is not `same`."""
        done = self._engine(look, {}, None, preview=True)
        return {step.resource: step.operation for step in done.changed}

    def apply(self, look: Look) -> None:
        """Bring the cluster to the program as the providers do, without the engine.

        For a test that shows the plan, or the engine on what stands already.
        """
        written = self._begin(look)
        for resource in look.program.resources:
            if isinstance(resource, KubernetesResource):
                obj = resource.object
                self.api.apply(closed_list.kind_of(obj["kind"]), obj)
        for gone in look.surplus:
            key = key_of(gone)
            self.server.remove(closed_list.kind_of(key.kind).path(key.namespace, key.name))
        self._settle(look, written)

    def heal(self, look: Look, *, settles: bool = True) -> EngineResult:
        """Let the engine bring the cluster to the program, under the Leases.

        Args:
            look: what is done.
            settles: write down what was made, in the end; a killed run does not.
        """
        reporter = Reporter(warns=True)
        with held_leases(self.http, reporter, clock=UnhurriedClock()) as leases:
            leases.hold(self.name)
            leases.hold_shared()
            settings = {run_file.LEASES: run_file.leases_text(leases.nonces())}
            written = self._begin(look)
            done = self._engine(look, settings, leases.record_engine, preview=False)
            if settles:
                self._settle(look, written)
            return done

    def _begin(self, look: Look) -> str:
        making = look.plan.making
        return made.keep(self.api, self.name, making.record, over=making.found)

    def _settle(self, look: Look, written: str) -> None:
        wait_for_definitions(self.api)
        live = read_cluster(self.api, self.name).live
        record = made.settled(look.plan.making.record, live, self.name)
        made.keep(self.api, self.name, record, over=written)

    def _engine(
        self,
        look: Look,
        settings: dict[str, str],
        started: Callable[[int, str, str], None] | None,
        *,
        preview: bool,
    ) -> EngineResult:
        return run_engine(
            look.program,
            look.live,
            tooling=self.tooling,
            kubeconfig_text=self.context.kubeconfig_text(),
            run_settings={run_file.NAMESPACE: self.name, **settings},
            reporter=Reporter(warns=True),
            preview=preview,
            surplus=look.surplus,
            started=started,
        )


def _without_pods(program: Program) -> Program:
    """Return what of a program a cluster without a node can do."""
    kept = [
        resource
        for resource in program.resources
        if not isinstance(resource, DynamicResource) or resource.kind == "NothingMore"
    ]
    there = {resource.name for resource in kept}
    return replace(
        program,
        resources=tuple(
            replace(one, depends_on=tuple(name for name in one.depends_on if name in there))
            for one in kept
        ),
    )
