"""The Leases of one run: that of its namespace, and that of `jr2-system` while it writes there.

Whoever writes what the Instances of a cluster share holds both, in this order. The engine's
processes are written down in each, so that whoever takes one of them over on the same host ends
what is left, also when it converges another Instance.

Source: design §5.2 (fencing).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jr2 import names
from jr2.errors import StepFailed

from . import converge
from .api import Api, ApiError
from .closed_list import NAMESPACE
from .components import operator
from .lease import UP, ConvergeLease, SystemClock, this_process

if TYPE_CHECKING:
    import httpx2

    from .lease import Clock
    from .report import Reporter


class Leases:
    """What one run holds; `held_leases` makes it and gives all of it back.

    Args:
        http: the API server.
        reporter: where the lines go.
        held: what gives the Leases back.
        clock: the clock of this run.
        verb: what the command does.
    """

    def __init__(
        self,
        http: httpx2.Client,
        reporter: Reporter,
        held: contextlib.ExitStack,
        *,
        clock: Clock | None = None,
        verb: str = UP,
    ) -> None:
        self._http = http
        self._clock = clock or SystemClock()
        self._verb = verb
        self._reporter = reporter
        self._held = held
        self._all: list[ConvergeLease] = []

    def hold(self, namespace: str) -> ConvergeLease:
        """Hold the Lease of one more namespace.

        Raises:
            StepFailed: another run holds it.
        """
        holder = this_process(self._clock, self._verb)
        lease = ConvergeLease(self._http, namespace, clock=self._clock, holder=holder)
        self._held.enter_context(lease.held(self._reporter))
        self._all.append(lease)
        return lease

    def hold_shared(self) -> ConvergeLease:
        """Hold the Lease of `jr2-system`, which is made when it is absent.

        Raises:
            StepFailed: another run holds it, or the namespace cannot be made.
        """
        api = Api(self._http)
        try:
            # A Lease needs a place to be in.
            if api.get(NAMESPACE.path(name=names.SYSTEM_NAMESPACE)) is None:
                converge.begin_to_write()
                api.apply(NAMESPACE, operator.system_namespace())
        except ApiError as error:
            raise StepFailed(
                f'cannot make namespace "{names.SYSTEM_NAMESPACE}": {error.message}'
            ) from error
        return self.hold(names.SYSTEM_NAMESPACE)

    @property
    def shares(self) -> bool:
        """Whether this run may write what the Instances share."""
        return any(lease.namespace == names.SYSTEM_NAMESPACE for lease in self._all)

    def nonces(self) -> list[tuple[str, str]]:
        """Return namespace and nonce of each Lease."""
        return [(lease.namespace, lease.nonce) for lease in self._all]

    def lapse(self) -> None:
        """Leave every Lease as it is: from now on none is renewed or given back."""
        for lease in self._all:
            lease.lapse()

    def record_engine(self, session: int, start: str, mark: str) -> None:
        """Write the engine's processes down in every Lease.

        Args:
            session: their session.
            start: when its leader was started.
            mark: what stands in the environment of each.

        Raises:
            StepFailed: another run has one of the Leases by now.
        """
        for lease in self._all:
            lease.record_engine(session, start, mark)


@contextlib.contextmanager
def held_leases(
    http: httpx2.Client, reporter: Reporter, *, clock: Clock | None = None, verb: str = UP
) -> Iterator[Leases]:
    """Give a run its Leases, and give them back in the end, the last one first.

    Args:
        http: the API server.
        reporter: where the lines go.
        clock: the clock of this run; that of the machine when it is not given.
        verb: what the command does; whoever waits for a Lease is told.

    Raises:
        StepFailed: another run took one of them over.
    """
    with contextlib.ExitStack() as held:
        yield Leases(http, reporter, held, clock=clock, verb=verb)
