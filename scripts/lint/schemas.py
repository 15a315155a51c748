"""What Kubernetes, the Prometheus operator and KEDA accept: unknown fields are refused, also in custom resources."""

import functools
import json

import jsonschema
import kubernetes_validate
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule, ServiceMonitor

# The oldest cluster that is promised, and the newest that the schemas know.
VERSIONS = ("1.30", kubernetes_validate.latest_version())


def strict(schema):
    """Objects with named properties have no others: the models themselves would pass a typo over in silence."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if closed.get("type") == "object" and closed.get("properties"):
        closed.setdefault("additionalProperties", False)
    return closed


CUSTOM = {
    (version, model.__name__): jsonschema.Draft202012Validator(strict(model.model_json_schema(by_alias=True)))
    for version, model in (
        ("keda.sh/v1alpha1", ScaledObject),
        ("monitoring.coreos.com/v1", PodMonitor),
        ("monitoring.coreos.com/v1", PrometheusRule),
        ("monitoring.coreos.com/v1", ServiceMonitor),
    )
}


def problems(resource):
    """What is wrong with a resource by its schema."""
    return found(json.dumps(resource))


# Most resources are the same in many builds.
@functools.cache
def found(text):
    return list(find(json.loads(text)))


def find(resource):
    custom = CUSTOM.get((resource.get("apiVersion"), resource.get("kind")))
    if custom:
        for error in custom.iter_errors(resource):
            yield f"{'.'.join(map(str, error.absolute_path))}: {deepest(error).message}"
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except kubernetes_validate.SchemaNotFoundError:
            yield f"no schema for it in Kubernetes {version}"
        except kubernetes_validate.ValidationError as error:
            yield f"Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"


def deepest(error):
    """The reason inside an "any of": the optional parts of the models are "this or null"."""
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    return error
