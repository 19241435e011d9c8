"""What an API server fills in by itself, and which fields it leaves empty.

A tree for each kind that jr2 applies, and for the parts that kinds share. A leaf says what the
server may have put there: `NOTHING` for a field that it never fills in, a tuple of the values that
it may give, or `SERVER` where the value follows from other fields or from the cluster. A field that
stands in no tree is one of a newer Kubernetes: what nobody owns in it is the server's.

Source: design §5.2 (Nothing more: allowed are server defaults).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final


class Default(Enum):
    """What is known of a field beside its values."""

    UNKNOWN = "unknown"
    SERVER = "server"


UNKNOWN: Final = Default.UNKNOWN
SERVER: Final = Default.SERVER
NOTHING: Final[tuple[Any, ...]] = ()

Node = Mapping[str, Any] | tuple[Any, ...] | Default


def _empty(*names: str) -> dict[str, Node]:
    return dict.fromkeys(names, NOTHING)


_HANDLER: Final[Mapping[str, Node]] = {
    **_empty("exec", "sleep", "tcpSocket"),
    "httpGet": {"scheme": ("HTTP",), "path": ("/",), **_empty("host", "httpHeaders", "port")},
}
_PROBE: Final[Mapping[str, Node]] = {
    **_HANDLER,
    **_empty("initialDelaySeconds", "terminationGracePeriodSeconds"),
    "grpc": _empty("port", "service"),
    "timeoutSeconds": (1,),
    "periodSeconds": (10,),
    "successThreshold": (1,),
    "failureThreshold": (3,),
}
_SECURITY: Final[Mapping[str, Node]] = {
    **_empty(
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "privileged",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seLinuxChangePolicy",
        "seLinuxOptions",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "sysctls",
        "windowsOptions",
    ),
    "capabilities": _empty("add", "drop"),
    "procMount": ("Default",),
    "seccompProfile": _empty("localhostProfile", "type"),
}
_RESOURCES: Final[Mapping[str, Node]] = {
    # A limit without a request makes the request.
    "requests": SERVER,
    **_empty("claims", "limits"),
}
_FIELD: Final[Mapping[str, Node]] = {"apiVersion": ("v1",), "fieldPath": NOTHING}
_CONTAINER: Final[Mapping[str, Node]] = {
    **_empty(
        "args",
        "command",
        "envFrom",
        "image",
        "name",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "stdin",
        "stdinOnce",
        "tty",
        "volumeDevices",
        "workingDir",
    ),
    "env": {
        **_empty("name", "value"),
        "valueFrom": {
            "fieldRef": _FIELD,
            "resourceFieldRef": {"divisor": ("0",), **_empty("containerName", "resource")},
            **_empty("configMapKeyRef", "fileKeyRef", "secretKeyRef"),
        },
    },
    "imagePullPolicy": ("IfNotPresent", "Always"),
    "lifecycle": {"preStop": _HANDLER, "postStart": _HANDLER, "stopSignal": NOTHING},
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "ports": {"protocol": ("TCP",), **_empty("containerPort", "hostIP", "hostPort", "name")},
    "resources": _RESOURCES,
    "securityContext": _SECURITY,
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "volumeMounts": {
        "recursiveReadOnly": ("Disabled",),
        **_empty("mountPath", "mountPropagation", "name", "readOnly", "subPath", "subPathExpr"),
    },
}
_MODE: Final[Mapping[str, Node]] = {"defaultMode": (420,)}
_VOLUME: Final[Mapping[str, Node]] = {
    "configMap": {**_MODE, **_empty("items", "name", "optional")},
    "downwardAPI": {**_MODE, "items": SERVER},
    "emptyDir": _empty("medium", "sizeLimit"),
    "hostPath": _empty("path", "type"),
    "image": {"pullPolicy": ("IfNotPresent", "Always"), "reference": NOTHING},
    "persistentVolumeClaim": _empty("claimName", "readOnly"),
    "projected": {**_MODE, "sources": SERVER},
    "secret": {**_MODE, **_empty("items", "optional", "secretName")},
}
_POD: Final[Mapping[str, Node]] = {
    **_empty(
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "dnsConfig",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "runtimeClassName",
        "schedulingGates",
        "schedulingGroup",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "tolerations",
        "topologySpreadConstraints",
    ),
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "dnsPolicy": ("ClusterFirst",),
    "resources": _RESOURCES,
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "securityContext": _SECURITY,
    "serviceAccount": ("default",),
    "serviceAccountName": ("default",),
    "terminationGracePeriodSeconds": (30,),
    "volumes": _VOLUME,
}
_TEMPLATE: Final[Mapping[str, Node]] = {
    "metadata": _empty(
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ),
    "spec": _POD,
}
_WORKLOAD: Final[Mapping[str, Node]] = {
    **_empty("minReadySeconds", "paused", "serviceName", "ordinals"),
    # Proof and engine compare replicas: an autoscaler may decide them.
    "replicas": SERVER,
    "selector": SERVER,
    "progressDeadlineSeconds": (600,),
    "revisionHistoryLimit": (10,),
    "template": _TEMPLATE,
    "volumeClaimTemplates": SERVER,
    "podManagementPolicy": ("OrderedReady",),
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": ("Retain",), "whenScaled": ("Retain",)},
}
_MATCH: Final[Mapping[str, Node]] = {
    "matchPolicy": ("Equivalent",),
    **_empty("excludeResourceRules", "namespaceSelector", "objectSelector", "resourceRules"),
}
_RULES: Final[Mapping[str, Node]] = _empty("rules", "aggregationRule")
_SUBJECTS: Final[Mapping[str, Node]] = _empty("subjects")

KINDS: Final[Mapping[str, Mapping[str, Node]]] = {
    "Deployment": {
        "spec": {
            **_WORKLOAD,
            "strategy": {
                "type": ("RollingUpdate",),
                "rollingUpdate": {"maxSurge": ("25%",), "maxUnavailable": ("25%",)},
            },
        }
    },
    "StatefulSet": {
        "spec": {
            **_WORKLOAD,
            "updateStrategy": {
                "type": ("RollingUpdate",),
                "rollingUpdate": {"partition": (0,), "maxUnavailable": (1,)},
            },
        }
    },
    "DaemonSet": {
        "spec": {
            **_WORKLOAD,
            "updateStrategy": {
                "type": ("RollingUpdate",),
                "rollingUpdate": {"maxSurge": (0,), "maxUnavailable": (1,)},
            },
        }
    },
    "Secret": _empty("data", "immutable"),
    "ConfigMap": _empty("data", "binaryData", "immutable"),
    # Of `secrets` no pod gets one, and controllers of some clusters list tokens there.
    "ServiceAccount": _empty("automountServiceAccountToken", "imagePullSecrets"),
    "Role": _RULES,
    "ClusterRole": _RULES,
    "RoleBinding": _SUBJECTS,
    "ClusterRoleBinding": _SUBJECTS,
    "NetworkPolicy": {
        "spec": {
            "podSelector": NOTHING,
            "policyTypes": (["Ingress"], ["Ingress", "Egress"]),
            **_empty("ingress", "egress"),
        }
    },
    "Service": {
        "spec": {
            **_empty(
                "externalIPs",
                "externalName",
                "loadBalancerClass",
                "loadBalancerIP",
                "loadBalancerSourceRanges",
                "publishNotReadyAddresses",
                "selector",
                "trafficDistribution",
            ),
            "type": ("ClusterIP",),
            "clusterIP": SERVER,
            "clusterIPs": SERVER,
            "ipFamilies": SERVER,
            "ipFamilyPolicy": SERVER,
            "internalTrafficPolicy": ("Cluster",),
            "externalTrafficPolicy": ("Cluster",),
            "allocateLoadBalancerNodePorts": (True,),
            "healthCheckNodePort": SERVER,
            "sessionAffinity": ("None",),
            "sessionAffinityConfig": SERVER,
            "ports": {
                "protocol": ("TCP",),
                "nodePort": SERVER,
                "targetPort": SERVER,
                **_empty("appProtocol", "name", "port"),
            },
        }
    },
    "PodDisruptionBudget": {
        "spec": _empty("maxUnavailable", "minAvailable", "selector", "unhealthyPodEvictionPolicy")
    },
    "PriorityClass": {
        **_empty("description", "globalDefault"),
        "preemptionPolicy": ("PreemptLowerPriority",),
    },
    "CustomResourceDefinition": {
        "spec": {
            "conversion": {"strategy": ("None",), "webhook": NOTHING},
            "names": {"listKind": SERVER, "singular": SERVER, **_empty("categories", "shortNames")},
            **_empty("group", "preserveUnknownFields", "scope", "versions"),
        }
    },
    "ValidatingAdmissionPolicy": {
        "spec": {
            "failurePolicy": ("Fail",),
            "matchConstraints": _MATCH,
            **_empty(
                "auditAnnotations", "matchConditions", "paramKind", "validations", "variables"
            ),
        }
    },
    "ValidatingAdmissionPolicyBinding": {
        "spec": {
            "matchResources": _MATCH,
            **_empty("paramRef", "policyName", "validationActions"),
        }
    },
}
"""Each kind that is compared, by the fields that are. A Namespace and a claim are not: what others
write there is theirs."""


def default_at(kind: str, path: tuple[str | int, ...]) -> Node:
    """Return what a server gives at a path; positions in lists do not count.

    What is in a field that the server never fills in is not filled in either.
    """
    node: Any = KINDS.get(kind, {})
    for step in path:
        if isinstance(step, str):
            if isinstance(node, Mapping):
                node = node.get(step, UNKNOWN)
            elif node not in (NOTHING, SERVER):
                node = UNKNOWN
    found: Node = node
    return found
