"""What Kubernetes, a shell and a registry take as names, for the fields of a config that hold one.

The API server would refuse such a name too, but only when the object that holds it is applied, in
the middle of a converge. So the shape is judged where the config is loaded. The name of a variable
is not repeated: whoever mixes up name and value pastes a token there.

Source: spec/authoring.md §3.2 and §3.3, field case 9; the rules are those of Kubernetes' own API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, StringConstraints

from .config_part import empty_is_unset, quoted, wrong_shape
from .repo_identity import is_token

_LABEL: Final = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LONGEST_SUBDOMAIN: Final = 253
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")
_VARIABLE: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_MAPPED_FIELD: Final = re.compile(r"metadata\.(?:labels|annotations)\['([^']+)'\]")
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REGISTRY: Final = re.compile(
    rf"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{{1,5}})?(?:/{_COMPONENT})*/*"
)


def is_object_name(text: str) -> bool:
    """Say whether a Secret, a ConfigMap or a PriorityClass can have a name."""
    return len(text) <= _LONGEST_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def _object_name(text: str) -> str:
    if not is_object_name(text):
        raise wrong_shape(
            f'{quoted(text)} can name no object of Kubernetes: a-z, 0-9, "-" and "." alone, with a '
            "letter or a digit at each end and beside each dot"
        )
    return text


def _data_key(text: str) -> str:
    if not _KEY.fullmatch(text) or text.startswith(".."):
        raise wrong_shape(
            f"{quoted(text)} can be no key of a Secret or a ConfigMap: letters, digits, "
            '"-", "_" and "." alone'
        )
    return text


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text) or is_token(text):
        raise wrong_shape(
            "must be the name of a variable, such as GITHUB_TOKEN, and never its value; what was "
            "given is not shown"
        )
    return text


def _is_label_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return (
        bool(name) and _VALUE.fullmatch(name) is not None and (not slash or is_object_name(prefix))
    )


def label_key(text: str) -> str:
    """Return the key of a label or a taint as it is.

    Raises:
        PydanticCustomError: Kubernetes takes none like it.
    """
    if not _is_label_key(text):
        raise wrong_shape(
            f"{quoted(text)} can be no key of a label or a taint: such as disktype or example.com/gpu"
        )
    return text


def label_value(text: str) -> str:
    """Return the value of a label or a taint as it is.

    Raises:
        PydanticCustomError: Kubernetes takes none like it.
    """
    if not _VALUE.fullmatch(text):
        raise wrong_shape(
            f"{quoted(text)} can be no value of a label or a taint: at most 63 letters, digits, "
            '"-", "_" and ".", with a letter or a digit at each end'
        )
    return text


def _labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in labels.items():
        label_key(key)
        label_value(value)
    return labels


def _field_path(text: str) -> str:
    mapped = _MAPPED_FIELD.fullmatch(text)
    if text not in _FIELDS and (mapped is None or not _is_label_key(mapped[1])):
        raise wrong_shape(
            f"{quoted(text)} is no field of a pod that a variable can hold: {', '.join(_FIELDS)}, "
            "metadata.labels['<key>'] or metadata.annotations['<key>']"
        )
    return text


def _registry(text: str | None) -> str | None:
    if text is not None and not _REGISTRY.fullmatch(text):
        # Its value is not shown: somebody may have put a password in it.
        raise wrong_shape(
            "is no registry with a path, such as registry.example/team — no scheme, no user and no "
            "tag, in lower case"
        )
    return text


_Word = Annotated[str, StringConstraints(min_length=1)]

ObjectName = Annotated[_Word, AfterValidator(_object_name)]
"""The name of a Secret, a ConfigMap or a PriorityClass."""
DataKey = Annotated[_Word, AfterValidator(_data_key)]
"""A key of a Secret or a ConfigMap."""
VariableName = Annotated[_Word, AfterValidator(_variable)]
"""The name of an environment variable."""
FieldPath = Annotated[_Word, AfterValidator(_field_path)]
"""A field of a pod that a variable can hold."""
Labels = Annotated[Mapping[str, str], AfterValidator(_labels)]
"""Labels of a node or a pod."""
RegistryHome = Annotated[str | None, BeforeValidator(empty_is_unset), AfterValidator(_registry)]
"""A registry, with the path under which images are; `.env` may set it, and an empty one is unset."""
