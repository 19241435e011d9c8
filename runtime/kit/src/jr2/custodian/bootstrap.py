"""Envoy's static config for a Custodian: what it listens on, and the few calls that it forwards.

Four calls go from the pod to the Orchestrator, each with the pod's own token in the place of its
Stand-in: the read of a Menu, a pick, the poll for the answer to a pick, and a fetch ask. Everything
else is answered 404 in the pod. Envoy has no admin interface and asks nobody for its config.

The types here are the few of Envoy's that we write; a field that is not one of them cannot be set.

Source: spec/runtime.md §3.1, design §6.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from .. import names

LARGEST_POOL: Final = 4_096
"""Connections that Envoy takes at once, from the pod and to the health check together."""
HEALTH_CONNECTIONS: Final = 16
UNREACHABLE_HEADER: Final = "x-jr2-custodian"
SCRIPT_PATH: Final = "/etc/jr2/custodian/config/custodian.lua"

_EXTENSIONS: Final = "type.googleapis.com/envoy.extensions"
_HCM: Final = f"{_EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager"
_LUA: Final = f"{_EXTENSIONS}.filters.http.lua.v3.Lua"
_ROUTER: Final = f"{_EXTENSIONS}.filters.http.router.v3.Router"
_LIMIT: Final = f"{_EXTENSIONS}.filters.network.connection_limit.v3.ConnectionLimit"
_MONITOR: Final = (
    f"{_EXTENSIONS}.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"
)
_HTTP_OPTIONS: Final = f"{_EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions"
_ERRORS: Final = ("UF", "UH", "UC", "UT", "URX", "UO", "LR", "UR")
"""Envoy's flags of an answer that it gave itself, since the Orchestrator gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where a Custodian listens, and where its Orchestrator does.

    Args:
        control: of the pod's calls to the Orchestrator.
        health: of the kubelet's probe.
        orchestrator: of the Orchestrator.
    """

    control: int = names.CUSTODIAN_CONTROL_PORT
    health: int = names.CUSTODIAN_HEALTH_PORT
    orchestrator: int = names.ORCHESTRATOR_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One kind of call that is forwarded.

    Args:
        method: the one method.
        path: the whole path, as a regular expression.
        retry: of Envoy's conditions those on which it asks again.
    """

    method: str
    path: str
    retry: str


_CALLS: Final = (
    _Call(method="GET", path="/agents/[^/]+/surface", retry="reset"),
    _Call(method="POST", path="/agents/[^/]+/events", retry="reset-before-request"),
    _Call(method="GET", path="/agents/[^/]+/deliveries/[^/]+", retry="reset"),
    _Call(method="POST", path="/fetch", retry="reset-before-request"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """One HTTP listener.

    Args:
        name: in Envoy's log.
        address: where it listens.
        port: its port.
        routes: what it answers, the first that matches.
        script: the path of its Lua filter; none without one.
        local_reply: how an answer that Envoy gives itself is written.
        idle: seconds until an idle connection is closed.
        connections: how many it takes at once; `None` as many as Envoy takes in all.
    """

    name: str
    address: str
    port: int
    routes: Sequence[Mapping[str, Any]]
    script: str | None = None
    local_reply: Mapping[str, Any] | None = None
    idle: int = 3_600
    connections: int | None = field(default=None)

    def config(self) -> dict[str, Any]:
        manager: dict[str, Any] = {
            "@type": _HCM,
            "stat_prefix": self.name,
            "codec_type": "HTTP1",
            "server_header_transformation": "PASS_THROUGH",
            "generate_request_id": False,
            "skip_xff_append": True,
            "normalize_path": True,
            "merge_slashes": False,
            "path_with_escaped_slashes_action": "KEEP_UNCHANGED",
            "request_headers_timeout": "60s",
            "common_http_protocol_options": {"idle_timeout": f"{self.idle}s"},
            # A poll waits for long, and a feed has no end: no clock runs on an open request.
            "stream_idle_timeout": "0s",
            "route_config": {
                "name": self.name,
                "request_headers_to_remove": ["x-forwarded-proto"],
                "virtual_hosts": [
                    {"name": self.name, "domains": ["*"], "routes": [dict(r) for r in self.routes]}
                ],
            },
            "http_filters": [*self._filters(), _typed("envoy.filters.http.router", _router())],
        }
        if self.local_reply is not None:
            manager["local_reply_config"] = dict(self.local_reply)
        chain = [_typed("envoy.filters.network.http_connection_manager", manager)]
        if self.connections is not None:
            limit = {
                "@type": _LIMIT,
                "stat_prefix": self.name,
                "max_connections": self.connections,
            }
            chain.insert(0, _typed("envoy.filters.network.connection_limit", limit))
        return {
            "name": self.name,
            "address": _address(self.address, self.port),
            "ignore_global_conn_limit": self.connections is not None,
            "filter_chains": [{"filters": chain}],
        }

    def _filters(self) -> list[dict[str, Any]]:
        if self.script is None:
            return []
        lua = {
            "@type": _LUA,
            "default_source_code": {"filename": self.script},
            # The script gives a fetch ask its path after it was judged, and it is not judged again.
            "clear_route_cache": False,
        }
        return [_typed("envoy.filters.http.lua", lua)]


def bootstrap(orchestrator: str, *, ports: Ports = Ports(), script_path: str = SCRIPT_PATH) -> str:
    """Return `envoy.json`.

    Args:
        orchestrator: the host name of the Orchestrator's Service.
        ports: where everything listens.
        script_path: where the Custodian finds `custodian.lua`.
    """
    control = _Listener(
        name="control",
        address="127.0.0.1",
        port=ports.control,
        routes=[*(_forwarded(call) for call in _CALLS), _not_found()],
        script=script_path,
        local_reply=_unreachable(),
    )
    health = _Listener(
        name="health",
        address="0.0.0.0",  # noqa: S104 - the kubelet asks from the node
        port=ports.health,
        routes=[_healthy(), _not_found()],
        idle=5,
        connections=HEALTH_CONNECTIONS,
    )
    return _json(
        {
            "static_resources": {
                "listeners": [control.config(), health.config()],
                "clusters": [_cluster(orchestrator, ports.orchestrator)],
            },
            "overload_manager": {
                "resource_monitors": [
                    _typed(
                        "envoy.resource_monitors.global_downstream_max_connections",
                        {
                            "@type": _MONITOR,
                            "max_active_downstream_connections": LARGEST_POOL,
                        },
                    )
                ]
            },
        }
    )


def script() -> str:
    """Return `custodian.lua`."""
    return resources.files(__package__).joinpath(names.HELD_SCRIPT_KEY).read_text("utf-8")


def _forwarded(call: _Call) -> dict[str, Any]:
    return {
        "match": {
            "safe_regex": {"regex": call.path},
            "headers": [{"name": ":method", "string_match": {"exact": call.method}}],
        },
        "route": {
            "cluster": names.ORCHESTRATOR,
            "auto_host_rewrite": True,
            "timeout": "0s",
            "retry_policy": {"retry_on": call.retry, "num_retries": 1},
        },
    }


def _not_found() -> dict[str, Any]:
    return {
        "match": {"prefix": "/"},
        "direct_response": {"status": 404, "body": {"inline_string": '{"error":"not found"}'}},
        "response_headers_to_add": [_header("content-type", "application/json")],
        # A path that is not forwarded needs no Stand-in to be refused.
        "typed_per_filter_config": {
            "envoy.filters.http.lua": {"@type": f"{_LUA}PerRoute", "disabled": True}
        },
    }


def _healthy() -> dict[str, Any]:
    return {
        "match": {
            "path": "/healthz",
            "headers": [{"name": ":method", "string_match": {"exact": "GET"}}],
        },
        "direct_response": {"status": 200, "body": {"inline_string": "ok"}},
    }


def _unreachable() -> dict[str, Any]:
    """Tell the Harness apart: an answer of the Orchestrator, and that it gave none."""
    return {
        "mappers": [
            {
                "filter": {"response_flag_filter": {"flags": list(_ERRORS)}},
                "status_code": 502,
                "headers_to_add": [_header(UNREACHABLE_HEADER, "unreachable")],
                "body_format_override": {
                    "json_format": {
                        "error": "the Orchestrator cannot be reached",
                        "detail": "%RESPONSE_CODE_DETAILS%",
                        "flags": "%RESPONSE_FLAGS%",
                    }
                },
            }
        ]
    }


def _cluster(host: str, port: int) -> dict[str, Any]:
    return {
        "name": names.ORCHESTRATOR,
        "type": "LOGICAL_DNS",
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": "5s",
        "load_assignment": {
            "cluster_name": names.ORCHESTRATOR,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(host, port)}}]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": _HTTP_OPTIONS,
                # The Orchestrator closes what is idle for longer than that.
                "common_http_protocol_options": {"idle_timeout": "4s"},
                "explicit_http_config": {"http_protocol_options": {}},
            }
        },
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _router() -> dict[str, Any]:
    return {"@type": _ROUTER, "suppress_envoy_headers": True}


def _header(name: str, value: str) -> dict[str, Any]:
    return {
        "header": {"key": name, "value": value},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }


def _typed(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "typed_config": dict(config)}


def _json(value: Mapping[str, Any]) -> str:
    """Return the one JSON text of a config; its digest starts pods again."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
