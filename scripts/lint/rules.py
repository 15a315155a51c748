"""What this project promises of its manifests, beyond what their schemas ask."""

import re
import tomllib

# Made by the operator, not by kustomize; docs/KUBERNETES.md says how.
OWN_SECRETS = {"outbox-relay", "outbox-relay-owner"}
# What a drained pod needs beyond [shutdown] grace: the cut turns commit, the process ends.
MARGIN = 20
PORT = 9464


def pods(build):
    """Every pod that a build would make: the owner's kind, its labels, its spec."""
    for resource in build:
        spec = resource.get("spec", {})
        if resource["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            template = spec["template"]
            yield resource["kind"], template["metadata"].get("labels", {}), template["spec"]


def of_kind(build, kind):
    return [resource for resource in build if resource["kind"] == kind]


def problems(build, rules, dashboard):
    """What is wrong with a build; `rules` and `dashboard` are the single sources of alerts and dashboard."""
    configs = [c for c in of_kind(build, "ConfigMap") if "outbox-relay.toml" in c["data"]]
    if len(configs) != 1:
        yield f"{len(configs)} ConfigMaps have an outbox-relay.toml"
        return
    config = tomllib.loads(configs[0]["data"]["outbox-relay.toml"])
    if not re.fullmatch(r"outbox-relay-[a-z0-9]{10}", configs[0]["metadata"]["name"]):
        yield "the ConfigMap's name has no hash: a changed configuration would not replace the pods"
    namespaces = {resource["metadata"].get("namespace") for resource in build}
    if len(namespaces) != 1 or None in namespaces:
        yield f"not in one namespace: {namespaces}"
    yield from shared_problems(build, config, rules, dashboard)


def shared_problems(build, config, rules, dashboard):
    """What is promised of the chart, too."""
    if config["admin"]["listen"] != f"0.0.0.0:{PORT}":
        yield f"[admin] listen is not 0.0.0.0:{PORT}: no probe could reach it"
    for kind, labels, spec in pods(build):
        yield from (f"{kind}: {problem}" for problem in pod_problems(kind, spec, config, build))
    yield from selector_problems(build)
    yield from scaling_problems(build, config)
    for rule in of_kind(build, "PrometheusRule"):
        if rule["spec"] != rules:
            yield "the PrometheusRule is not deploy/prometheus/rules.yaml"
    for shown in of_kind(build, "ConfigMap"):
        label = shown["metadata"].get("labels", {}).get("grafana_dashboard")
        if label == "1" and shown["data"] != {"outbox-relay.json": dashboard}:
            yield "the dashboard is not deploy/grafana/outbox-relay.json"


def pod_problems(kind, spec, config, build):
    if spec.get("automountServiceAccountToken") is not False:
        yield "mounts a token"
    if spec.get("enableServiceLinks") is not False:
        yield "takes variables from services of the namespace"
    if kind != "Job" and spec.get("terminationGracePeriodSeconds", 30) < grace(config) + MARGIN:
        yield f"is killed less than {MARGIN} s after [shutdown] grace"
    if not restricted(spec):
        yield "would not be admitted under the restricted pod security standard with a read-only root"
    made = {(r["kind"], r["metadata"]["name"]) for r in build}
    made |= {("Secret", name) for name in OWN_SECRETS}
    for volume in spec["volumes"]:
        wanted = ("Secret", volume["secret"]["secretName"]) if "secret" in volume else None
        wanted = ("ConfigMap", volume["configMap"]["name"]) if "configMap" in volume else wanted
        if wanted and wanted not in made:
            yield f"there is no {wanted}"
    mounts = {mount["mountPath"] for c in spec["containers"] for mount in c["volumeMounts"]}
    for path in files(config):
        if path.rsplit("/", 1)[0] not in mounts:
            yield f"{path} of the configuration is not mounted"
    for container in spec["containers"]:
        yield from container_problems(kind, container)
    for container in spec.get("initContainers", []):
        yield from container_problems(f"{kind}'s init container", container)


def container_problems(kind, container):
    resources = container.get("resources", {})
    if "cpu" in resources.get("limits", {}):
        yield "has a CPU limit"
    if "memory" not in resources.get("limits", {}) or set(resources.get("requests", {})) != {"cpu", "memory"}:
        yield "needs requests and a memory limit"
    if not re.search(r":[^/:]+$", container["image"]) or container["image"].endswith(":latest"):
        yield f"image {container['image']} has no tag of its own"
    if kind == "Deployment":
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        probes = {p: container.get(p, {}).get("httpGet") for p in ("startupProbe", "livenessProbe", "readinessProbe")}
        paths = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
        if ports != {"admin": PORT} or probes != {p: {"path": path, "port": "admin"} for p, path in paths.items()}:
            yield f"its probes do not ask /livez and /readyz on {PORT}"


def restricted(spec):
    pod = spec.get("securityContext", {})
    return (
        pod.get("runAsNonRoot") is True
        and pod.get("runAsUser") == 10001
        and pod.get("seccompProfile") == {"type": "RuntimeDefault"}
        and not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
        and all(
            container.get("securityContext")
            == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            for container in spec["containers"] + spec.get("initContainers", [])
        )
    )


def selector_problems(build):
    """A selector that selects nothing is a rule that is silently not there."""
    labels = [labels for _, labels, _ in pods(build)]
    for resource in build:
        spec = resource.get("spec", {})
        selector = spec.get("podSelector") or spec.get("selector")
        if resource["kind"] == "ScaledObject" or not selector:
            continue
        wanted = selector.get("matchLabels", selector if resource["kind"] == "Service" else None).items()
        of_services = [r["metadata"]["labels"] for r in of_kind(build, "Service")]
        if not any(wanted <= has.items() for has in (of_services if resource["kind"] == "ServiceMonitor" else labels)):
            yield f"{resource['kind']} {resource['metadata']['name']} selects no pod"


def scaling_problems(build, config):
    relays = len(config["relay"])
    for scaled in of_kind(build, "ScaledObject"):
        spec = scaled["spec"]
        least, most = spec["minReplicaCount"], spec["maxReplicaCount"]
        if not 2 <= least <= most <= relays:
            yield f"scales from {least} to {most}, with {relays} relays: 2 to the number of relays makes sense"
        if not least <= spec.get("fallback", {}).get("replicas", 0) <= most:
            yield "has no fallback within its bounds"
        targets = [d for d in of_kind(build, "Deployment") if d["metadata"]["name"] == spec["scaleTargetRef"]["name"]]
        if len(targets) != 1 or "replicas" in targets[0]["spec"]:
            yield "the scaled Deployment is missing, or says how many replicas it has, too"


def files(table):
    """The values of all keys that end with _file."""
    if isinstance(table, list):
        return [path for item in table for path in files(item)]
    if not isinstance(table, dict):
        return []
    own = [value for key, value in table.items() if key.endswith("_file")]
    return own + [path for value in table.values() for path in files(value)]


def grace(config):
    text = config.get("shutdown", {}).get("grace", "20s")
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60}[unit]
