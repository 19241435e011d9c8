"""The converge Lease: one converge at a time writes, and a killed one stands in nobody's way.

The Lease `jr2-converge` carries a random nonce and who holds it. Its holder renews it every two
seconds. Another run watches it for five seconds on its own clock: a Lease that moves has a living
holder, and the run ends and names it; one that does not move is taken over. No clock of another
machine is compared, and no process number counts. Every write is guarded by the resourceVersion
that was read, so that of two runs that take it over one has it. A holder that cannot renew for
those five seconds may have been taken over by now, and ends its engine itself.

Source: design §5.2 (fencing), field case 4.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from jr2 import names
from jr2.errors import StepFailed
from jr2.wire import LeaseStamp

from . import process_table

if TYPE_CHECKING:
    from .report import Reporter

UP: Final = "up"
DOWN: Final = "down"
"""What a holder does: it converges the Instance, or takes it away."""
RENEW_SECONDS: Final = 2.0
WATCH_SECONDS: Final = 5.0
RENEWAL_TIMEOUT: Final = 2.0
"""Seconds that one renewal waits for the API server: a hung one must not use up the five."""
_LOOK_SECONDS: Final = 0.25
_LONGEST_LOOK: Final = 1.0
"""Seconds that count between two looks of whoever watches a Lease."""
_TRIES: Final = 8
_HOLDER: Final = "jr2.dev/lease-holder"


class Clock(Protocol):
    """The clock of a run; tests have their own."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def now(self) -> datetime:
        """Return the time with its zone."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event, and say whether it came."""


class SystemClock:
    """The clock of this machine."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event, and say whether it came."""
        return event.wait(seconds)


class Holder(BaseModel):
    """Who holds a Lease, as it stands in the Lease; for people, and to end what was left over."""

    # A newer Kit may say more of itself, and its Lease must be readable all the same.
    model_config = ConfigDict(extra="ignore", frozen=True)

    user: str
    host: str
    pid: int
    started: str
    """When the command was started, in UTC."""
    session: int | None = None
    """The session of the engine's processes, once they run."""
    session_start: str = ""
    mark: str = ""
    """What stands in the environment of each of the engine's processes."""
    verb: str = UP
    """What the command does with the namespace; an older Kit does not say it of `down`."""

    @property
    def removes(self) -> bool:
        """Whether the command takes the Instance away."""
        return self.verb == DOWN

    def words(self) -> str:
        """Return the holder as a person reads it."""
        return f"{self.user} on {self.host} (pid {self.pid}, since {self.started})"


def this_process(clock: Clock, verb: str = UP) -> Holder:
    """Return this command as a holder.

    Args:
        clock: the clock of this run.
        verb: what the command does.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    started = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return Holder(user=user, host=process_table.host(), pid=os.getpid(), started=started, verb=verb)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A Lease as it was read."""

    body: Mapping[str, Any]

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def nonce(self) -> str:
        return str(self.body.get("spec", {}).get("holderIdentity") or "")

    @property
    def beat(self) -> tuple[str, str]:
        """What only a holder moves; a label that somebody else changes is no sign of life."""
        return self.nonce, str(self.body.get("spec", {}).get("renewTime") or "")

    @property
    def acquired(self) -> datetime | None:
        text = self.body.get("spec", {}).get("acquireTime")
        try:
            return datetime.fromisoformat(text) if text else None
        except ValueError:
            return None

    @property
    def transitions(self) -> int:
        return int(self.body.get("spec", {}).get("leaseTransitions") or 0)

    @property
    def holder(self) -> Holder | None:
        text = (self.body["metadata"].get("annotations") or {}).get(_HOLDER)
        try:
            return Holder.model_validate_json(text) if text else None
        except ValidationError:
            return None

    @property
    def removes(self) -> bool:
        return self.holder is not None and self.holder.removes

    def who(self) -> str:
        holder = self.holder
        return holder.words() if holder else "a run that does not say who it is"


class ConvergeLease:
    """The Lease of one namespace in the hands of one run.

    Args:
        http: the API server, as `KubeContext.http` gives it; it is used from two threads.
        namespace: the Instance's namespace, or `jr2-system`.
        clock: the clock of this run.
        holder: who this run is.
    """

    def __init__(
        self,
        http: httpx2.Client,
        namespace: str,
        *,
        clock: Clock | None = None,
        holder: Holder | None = None,
    ) -> None:
        self._http = http
        self._namespace = namespace
        self._clock = clock or SystemClock()
        self._holder = holder or this_process(self._clock)
        self._lock = threading.Lock()
        self._mine: _Seen | None = None
        self._acquired: datetime | None = None
        self._renewed = 0.0
        self._taken_by: str | None = None
        self._lapsed = False
        self._goes = False
        self.nonce = secrets.token_hex(16)

    @property
    def namespace(self) -> str:
        """Where the Lease is."""
        return self._namespace

    @property
    def stamp(self) -> LeaseStamp:
        """What a publish carries; only of a Lease that was acquired."""
        assert self._acquired is not None
        return LeaseStamp(acquired=self._acquired, nonce=self.nonce)

    @contextlib.contextmanager
    def held(self, reporter: Reporter) -> Iterator[ConvergeLease]:
        """Hold the Lease for a while: acquire, renew in a thread, release.

        When another run takes it over, or may have, the engine's processes are ended, and what the
        body raised becomes an error that says so.

        Raises:
            StepFailed: another run holds it or took it over, or it could not be renewed.
        """
        self.acquire(reporter)
        over = threading.Event()
        renewing = threading.Thread(target=self._keep_renewing, args=(over,), daemon=True)
        renewing.start()
        try:
            yield self
        except BaseException as error:
            if self._is_lost and isinstance(error, Exception):
                raise self._lost() from error
            raise
        finally:
            over.set()
            renewing.join()
            with contextlib.suppress(httpx2.HTTPError, StepFailed):
                self.release()
        if self._is_lost:
            raise self._lost()

    def acquire(self, reporter: Reporter) -> None:
        """Take the Lease, or take it over from a run that no longer renews it.

        Raises:
            StepFailed: another run holds it, or the API server refuses.
        """
        for _ in range(_TRIES):
            seen = self._read()
            if seen is None:
                if self._create():
                    return
                continue
            if not seen.nonce:
                if self._take(seen):
                    return
                continue
            seen = self._watch(seen, reporter)
            if seen is None or not seen.nonce:
                continue
            self._end_left_over(seen)
            if self._take(seen):
                reporter.line(
                    f"lease: taken over from {seen.who()}, which no longer renews it",
                    code="lease-taken-over",
                )
                return
        raise StepFailed(
            f"cannot take the Lease {names.CONVERGE_LEASE} in {self._namespace}: "
            "it changed each time it was to be written"
        )

    def renew(self) -> bool:
        """Renew the Lease once; `False` when another run has it.

        Raises:
            StepFailed: the API server refuses.
            httpx2.HTTPError: the API server does not answer.
        """
        with self._lock:
            return self._write_mine()

    def record_engine(self, session: int, start: str, mark: str) -> None:
        """Write down the engine's processes, so that the next run can end what is left of them.

        Args:
            session: their session.
            start: when its leader was started.
            mark: what stands in the environment of each.

        Raises:
            StepFailed: another run has the Lease by now, or may have it.
        """
        with self._lock:
            if self._lapsed:
                raise self._lost()
            self._holder = self._holder.model_copy(
                update={"session": session, "session_start": start, "mark": mark}
            )
            if not self._write_mine():
                raise self._lost()

    def goes_with_its_namespace(self) -> None:
        """Leave the Lease in the hands of this run, as its namespace is deleted in this moment.

        It is neither renewed nor given back: nobody can take it over before the namespace takes no
        new object any more, and that it is gone then is no loss.
        """
        with self._lock:
            self._goes = True

    def lapse(self) -> None:
        """Leave the Lease as it is: from now on it is neither renewed nor given back.

        What this run started may still write for a moment. Whoever comes next sees after five
        seconds that nobody renews the Lease, and takes it over.
        """
        with self._lock:
            self._goes = True

    def release(self) -> None:
        """Give the Lease back; its time of acquisition stays, so that the next one is later."""
        with self._lock:
            if self._mine is None or self._taken_by is not None or self._goes:
                return
            body = self._body("", self._mine)
            del body["metadata"]["annotations"]
            del body["spec"]["holderIdentity"]
            self._put(body, RENEWAL_TIMEOUT)
            self._mine = None

    def _keep_renewing(self, over: threading.Event) -> None:
        pause = RENEW_SECONDS
        while not self._clock.wait(over, pause):
            try:
                ours, pause = self.renew(), RENEW_SECONDS
            except (httpx2.HTTPError, StepFailed):
                # Not reached this time: the nonce decides when the server answers again, unless a
                # watcher can have taken the Lease over before that.
                ours, pause = self._within(), _LOOK_SECONDS
            if not ours:
                self._end_engine()
                return

    def _within(self) -> bool:
        """Say whether no watcher can have taken the Lease over yet."""
        with self._lock:
            self._lapsed = self._clock.monotonic() - self._renewed >= WATCH_SECONDS
            return not self._lapsed

    def _end_engine(self) -> None:
        with self._lock:
            holder = self._holder
        if holder.session is not None:
            process_table.end_left_over(holder.session, holder.session_start, holder.mark)

    def _watch(self, seen: _Seen, reporter: Reporter) -> _Seen | None:
        """Look at a Lease for five seconds; return it as it is when nobody renewed it.

        A machine that gave no turn to this run has perhaps given none to the holder either: the
        time between two looks counts for no more than a second.

        Raises:
            StepFailed: its holder lives.
        """
        watched, before, now = 0.0, self._clock.monotonic(), None
        try:
            while watched < WATCH_SECONDS:
                reporter.progress(f"lease: held by {seen.who()} — watching whether it is renewed")
                self._clock.sleep(_LOOK_SECONDS)
                now = self._read()
                if now is None or not now.nonce:
                    break
                if now.beat != seen.beat:
                    if now.removes:
                        raise StepFailed(
                            f'a `jr2 down` removes namespace "{self._namespace}": {now.who()}'
                        )
                    raise StepFailed(
                        f'another `jr2 up` converges namespace "{self._namespace}": {now.who()}'
                    )
                here = self._clock.monotonic()
                watched, before = watched + min(here - before, _LONGEST_LOOK), here
            return now
        finally:
            reporter.progress(None)

    def _end_left_over(self, seen: _Seen) -> None:
        holder = seen.holder
        if holder is None or holder.session is None or holder.host != self._holder.host:
            return
        process_table.end_left_over(holder.session, holder.session_start, holder.mark)

    def _create(self) -> bool:
        body = self._body(self.nonce, None)
        response = self._http.post(_path(self._namespace), json=body)
        if response.status_code == 409:
            return False
        self._took(_Seen(_checked(response)), body)
        return True

    def _take(self, seen: _Seen) -> bool:
        body = self._body(self.nonce, seen)
        body["spec"]["leaseTransitions"] = seen.transitions + 1
        found = self._put(body)
        if found is None:
            return False
        self._took(found, body)
        return True

    def _took(self, found: _Seen, body: Mapping[str, Any]) -> None:
        self._mine = found
        self._acquired = datetime.fromisoformat(body["spec"]["acquireTime"])
        self._renewed = self._clock.monotonic()

    def _write_mine(self) -> bool:
        assert self._mine is not None
        for _ in range(_TRIES):
            if self._taken_by is not None:
                return False
            if self._goes:
                return True
            asked = self._clock.monotonic()
            left = max(WATCH_SECONDS - (asked - self._renewed), _LOOK_SECONDS)
            timeout = min(RENEWAL_TIMEOUT, left)
            found = self._put(self._body(self.nonce, self._mine), timeout)
            if found is not None:
                self._mine, self._renewed = found, asked
                return True
            found = self._read(timeout)
            if found is None or found.nonce != self.nonce:
                self._taken_by = taken_over(self._namespace, found)
                return False
            self._mine = found
        return True

    def _body(self, nonce: str, seen: _Seen | None) -> dict[str, Any]:
        now = self._clock.now()
        acquired = now if self._acquired is None else self._acquired
        if self._acquired is None and seen is not None and seen.acquired is not None:
            # Later than the last holder's, whatever the two machines think of the time.
            acquired = max(now, seen.acquired + timedelta(microseconds=1))
        holder = self._holder.model_dump_json(exclude_none=True)
        body: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": names.CONVERGE_LEASE,
                "namespace": self._namespace,
                "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
                "annotations": {_HOLDER: holder},
            },
            "spec": {
                "holderIdentity": nonce,
                "leaseDurationSeconds": int(WATCH_SECONDS),
                "acquireTime": _moment(acquired),
                "renewTime": _moment(now),
                "leaseTransitions": 0 if seen is None else seen.transitions,
            },
        }
        if seen is not None:
            body["metadata"]["resourceVersion"] = seen.version
        return body

    def _read(self, timeout: float | None = None) -> _Seen | None:
        return _read(self._http, self._namespace, timeout)

    def _put(self, body: Mapping[str, Any], timeout: float | None = None) -> _Seen | None:
        """Write if nobody wrote since; `None` when somebody did."""
        response = self._http.put(
            _path(self._namespace, names.CONVERGE_LEASE), json=dict(body), **_timeout(timeout)
        )
        if response.status_code in (404, 409):
            return None
        return _Seen(_checked(response))

    @property
    def _is_lost(self) -> bool:
        return self._taken_by is not None or self._lapsed

    def _lost(self) -> StepFailed:
        if self._taken_by is None:
            return StepFailed(
                f'the Lease {names.CONVERGE_LEASE} of namespace "{self._namespace}" could not be '
                f"renewed for {WATCH_SECONDS:.0f}s, so another run may have it — run `jr2 up` "
                "again when the API server answers"
            )
        return StepFailed(self._taken_by)


def taken_over(namespace: str, by: _Seen | None) -> str:
    """Say who has the Lease that a run held, in words that are true for each who can.

    Args:
        namespace: where the Lease is.
        by: the Lease as it is now; `None` when there is none.
    """
    if by is None:
        return (
            f'the Lease {names.CONVERGE_LEASE} of namespace "{namespace}" was removed, so another '
            "run may write — run the command again"
        )
    if not by.nonce:
        return (
            f'another run took over namespace "{namespace}" and has ended — run the command again'
        )
    if by.removes:
        return f'a `jr2 down` took over namespace "{namespace}" and removes it: {by.who()}'
    return f'another `jr2 up` took over the converge of namespace "{namespace}": {by.who()}'


def nonce_of(http: httpx2.Client, namespace: str) -> str | None:
    """Return the nonce of the run that holds the Lease now; `None` when nobody does.

    Raises:
        StepFailed: the API server refuses.
        httpx2.HTTPError: the API server does not answer.
    """
    seen = _read(http, namespace)
    return (seen.nonce or None) if seen is not None else None


def loss_of(http: httpx2.Client, namespace: str, nonce: str) -> str | None:
    """Return why the run of a nonce does not hold the Lease, or `None` while it does.

    Raises:
        StepFailed: the API server refuses.
        httpx2.HTTPError: the API server does not answer.
    """
    seen = _read(http, namespace)
    if nonce and seen is not None and seen.nonce == nonce:
        return None
    return taken_over(namespace, seen)


def _read(http: httpx2.Client, namespace: str, timeout: float | None = None) -> _Seen | None:
    response = http.get(_path(namespace, names.CONVERGE_LEASE), **_timeout(timeout))
    return None if response.status_code == 404 else _Seen(_checked(response))


def _timeout(seconds: float | None) -> dict[str, Any]:
    """Return the argument of a request for its seconds; without them the client's own hold."""
    return {} if seconds is None else {"timeout": seconds}


def _path(namespace: str, name: str | None = None) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return path if name is None else f"{path}/{name}"


def _checked(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = {}
    if response.is_error or not isinstance(body, dict):
        words = body.get("message") if isinstance(body, dict) else None
        raise StepFailed(
            f"cannot take the Lease {names.CONVERGE_LEASE}: "
            f"{words or f'the API server answered {response.status_code}'}"
        )
    return body


def _moment(moment: datetime) -> str:
    """Return a time as Kubernetes writes it, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
