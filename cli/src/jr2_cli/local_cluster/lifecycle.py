"""The local cluster: created, started, stopped, deleted.

Every verb may be repeated, and a verb that was killed is finished by the next one: `create` keeps
what is there and makes what is missing, `delete` takes away what it finds.

Source: design §7.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Final

from jr2.errors import Aborted, StepFailed
from jr2_infra import rules
from jr2_infra.report import Reporter

from . import bring_up, kubeconfig, layout, private_files, renewal, verb_lock
from .layout import Layout
from .node import before, leftovers, machine, network, stores
from .record import Record, read_record
from .supervision import plan, process_table, remains

_STOP_SECONDS: Final = 90.0
_PAUSE: Final = 0.05
_QUESTION: Final = "delete the local cluster and everything in it?"
CREATE: Final = "`jr2 cluster create`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The verbs.

    Args:
        reporter: where the lines go.
        environ: the environment that KUBECONFIG, HOME and PATH are read from.
        files: where the cluster lies.
    """

    reporter: Reporter
    environ: Mapping[str, str]
    files: Layout = field(default_factory=Layout)

    def create(self) -> None:
        """Make the cluster, or start the one that is there, and wait until it can be used.

        Raises:
            Refusal: it cannot run here.
            StepFailed: a program is missing, or the cluster does not come up.
        """
        machine.check_platform(sys.platform, os.geteuid(), "create")
        with self._locked():
            record = read_record(self.files)
            if record is not None and remains.is_running(self.files.supervisor_lock):
                self._merge(record)
                self._say_running(record)
                return
            self._bring_up()

    def start(self) -> None:
        """Start the cluster that was stopped, with its data, and wait until it can be used.

        Raises:
            Refusal: it cannot run here.
            StepFailed: there is none, a program is missing, or it does not come up.
        """
        machine.check_platform(sys.platform, os.geteuid(), "start")
        with self._locked():
            record = read_record(self.files)
            if record is None:
                raise StepFailed(f"there is no local cluster — {CREATE} makes one")
            if remains.is_running(self.files.supervisor_lock):
                self._say_running(record)
                return
            self._bring_up()

    def stop(self) -> None:
        """End every process of the cluster and of its pods; the data stay.

        Raises:
            Refusal: it cannot run here.
            StepFailed: a process does not end.
        """
        machine.check_platform(sys.platform, os.geteuid(), "stop")
        with self._locked():
            if not self.files.root.exists():
                raise StepFailed(f"there is no local cluster — {CREATE} makes one")
            self._stop()
            self._say("stopped: `jr2 cluster start` goes on with the same data")

    def delete(self, *, yes: bool) -> None:
        """Take the cluster away with its data, and the context out of the kubeconfigs.

        Args:
            yes: do not ask whether the data may go.

        Raises:
            Refusal: it cannot run here.
            Aborted: the answer was no.
            StepFailed: something of it stays; the next `delete` goes on from there.
        """
        machine.check_platform(sys.platform, os.geteuid(), "delete")
        with self._locked():
            record = read_record(self.files)
            existed = self.files.root.exists()
            if existed and not yes and not self.reporter.confirm(_QUESTION):
                raise Aborted(rules.ABORTED)
            if existed:
                self._stop()
            leftovers.end_pods(self.files)
            if existed or network.is_ours():
                network.remove()
            before.restore(self.files)
            leftovers.unmount(self.files.root)
            known = set() if record is None else set(record.kubeconfigs)
            for path in sorted({*known, kubeconfig.default_path(self.environ)}):
                kubeconfig.unmerge(path)
            if record is not None and record.stores is not None:
                stores.remove(record.stores)
            leftovers.remove_files(self.files)
            self._say("deleted: the local cluster" if existed else "there is no local cluster")

    def _bring_up(self) -> None:
        if remains.is_running(self.files.supervisor_lock):
            # It belongs to a `create` that did not come to its end.
            self._stop()
        present = read_record(self.files)
        # No pod of ours has made one yet.
        had_stores = stores.present() if present is None else present.stores
        version = bring_up.BringUp(reporter=self.reporter, files=self.files).run()
        self._merge(
            Record(
                kubernetes=version,
                created_at=time.time() if present is None else present.created_at,
                kubeconfigs=() if present is None else present.kubeconfigs,
                stores=had_stores,
            )
        )
        self._say_ready(version)

    def _stop(self) -> None:
        if remains.is_running(self.files.supervisor_lock):
            self.reporter.progress("cluster: stopping")
            self._stop_supervisor()
            self.reporter.progress(None)
        # What a supervisor that was killed left, and what a process of it had started last.
        with suppress(OSError, ValueError):
            remains.end_leftovers(plan.Plan.model_validate_json(self.files.plan.read_bytes()))
        leftovers.end_pods(self.files)

    def _stop_supervisor(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        told: int | None = None
        while remains.is_running(self.files.supervisor_lock):
            # One that just started may not listen yet: it is told when it says who it is. When
            # what it wrote cannot be read, its command line says it.
            state = remains.read_state(self.files.supervisor_state)
            known = process_table.find_by_argument(str(self.files.plan)) if state is None else ()
            pid = next(iter(known), None) if state is None else state.pid
            if told != pid and pid is not None:
                told = pid
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"the supervisor did not end in {_STOP_SECONDS:.0f}s — see "
                    f"{self.files.logs / 'supervisor.log'}"
                )
            time.sleep(_PAUSE)

    def _merge(self, record: Record) -> None:
        path = kubeconfig.default_path(self.environ)
        known = tuple(dict.fromkeys([*record.kubeconfigs, path]))
        # Noted before it is written: a delete then finds it, whatever happens between the two.
        noted = record.model_copy(update={"kubeconfigs": known})
        private_files.write(self.files.record, noted.model_dump_json())
        kubeconfig.merge(
            path,
            kubeconfig.admin_entries(self.files),
            becomes_current=not kubeconfig.says_current(kubeconfig.paths(self.environ)[1:]),
        )
        # A certificate may have been renewed: the files that already hold it get the new one.
        others = tuple(other for other in known if other != path)
        for problem in renewal.refresh_kubeconfigs(self.files, others):
            self.reporter.warning(problem, code="cluster-kubeconfig")
        self._say(f"cluster: the context {layout.CONTEXT} is in {path}")

    def _say_running(self, record: Record) -> None:
        self._say(f"cluster: runs already, in {self.files.root}")
        bring_up.BringUp(reporter=self.reporter, files=self.files).wait_until_healthy()
        self._say_ready(record.kubernetes)

    def _say_ready(self, version: str) -> None:
        self._say(f"ready: context {layout.CONTEXT} (Kubernetes v{version})", code="cluster-ready")

    def _say(self, text: str, *, code: str = "cluster") -> None:
        self.reporter.line(text, code=code)

    def _locked(self) -> AbstractContextManager[None]:
        return verb_lock.hold(
            self.files.root.parent,
            lambda: self._say("cluster: another `jr2 cluster` is at work, waiting"),
        )
