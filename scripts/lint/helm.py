"""The Helm chart: rendered by a real helm, held against the schemas, the project's rules and what kustomize makes of the same
configuration; and what it must refuse, with which words. HELM is the program."""

import copy
import os
import pathlib
import subprocess
import tomllib

import yaml

import rules as promises

CHART = pathlib.Path("deploy/helm/outbox-relay")
CONFIG = pathlib.Path("deploy/kubernetes/overlays/prod/settings/outbox-relay.toml")
MONITORED = {"serviceMonitor": {"enabled": True}, "rules": {"enabled": True}, "dashboard": {"enabled": True}}
EVERYTHING = {
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "check": {"enabled": True},
    "monitoring": {**MONITORED, "labels": {"release": "prometheus"}, "rules": {"enabled": True, "runbookBase": "https://example.com/r"}},
    "topologySpread": {"whenUnsatisfiable": "DoNotSchedule"},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "networkPolicy": {"extraEgress": [{"ports": [{"port": 8443}]}], "extraIngress": [{"ports": [{"port": 9465}]}]},
    "logLevel": "info,outbox_relay=debug",
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/outbox-relay"}},
    "podLabels": {"team": "booking"},
    "podAnnotations": {"example.com/note": "1"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/etc/ca/ca.crt"}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
}
NOTHING = {
    "migrate": {"enabled": False},
    "topologySpread": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
}
# What is wrong, the values, the configuration (the prod overlay's, changed), and a part of what helm must say.
REFUSED = [
    ("no configuration", {}, None, "config is missing: --set-file config=outbox-relay.toml"),
    ("an unknown key", {"replicaCount": 2}, (), "replicaCount"),
    ("an unknown key further down", {"image": {"name": "x"}}, (), "name"),
    ("a number as text", {"replicas": "three"}, (), "replicas"),
    ("an image that moves", {"image": {"tag": "latest"}}, (), "tag"),
    ("a digest that is none", {"image": {"digest": "sha256:12"}}, (), "digest"),
    ("a CPU limit", {"resources": {"limits": {"cpu": "1"}}}, (), "cpu"),
    ("a listener that no probe reaches", {}, ("0.0.0.0:9464", "127.0.0.1:9464"), "[admin] listen must be"),
    ("a listener in a comment", {}, ("listen = ", "# listen = "), "[admin] listen must be"),
    ("a pod killed within its grace", {}, ("[admin]", '[shutdown]\ngrace = "1m"\n[admin]'), "it must be 80 or more"),
]
# Values that make another relay than kustomize's: a comparison that passes one of them is none.
DIFFERENT = [
    {"replicas": 2},
    {"terminationGracePeriodSeconds": 60},
    {"check": {"enabled": True}},
    {"image": {"tag": "0.0.1"}},
    {"networkPolicy": {"egress": {"https": False}}},
    {"monitoring": {**MONITORED, "namespace": "prometheus"}},
    {"monitoring": {**MONITORED, "serviceMonitor": {"enabled": True, "interval": "30s"}}},
    {"migrate": {"relayRole": "other"}},
    {"serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/other"}}},
]


def helm(*arguments, values=None, config=()):
    """Status, output, and what it says beside."""
    command = [os.environ["HELM"], *arguments, "-f", "-"]
    given = dict(values or {})
    if config is not None:
        given["config"] = CONFIG.read_text().replace(*config) if config else CONFIG.read_text()
    made = subprocess.run(command, input=yaml.safe_dump(given), capture_output=True, text=True)
    return made.returncode, made.stdout, made.stderr


def template(version, **how):
    return helm("template", "outbox-relay", str(CHART), "--namespace", "outbox-relay", "--kube-version", version, **how)


def problems(kustomize, by_schema, rules, dashboard):
    found = []
    for link, source in (("rules.yaml", "prometheus/rules.yaml"), ("outbox-relay.json", "grafana/outbox-relay.json")):
        if (CHART / "files" / link).resolve() != (CHART.parent.parent / source).resolve():
            found.append(f"files/{link} is a copy: link it to deploy/{source}")
    version = tomllib.loads(pathlib.Path("Cargo.toml").read_text())["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    if (chart["version"], chart["appVersion"]) != (version, version):
        found.append(f"its versions are not {version}")
    for values in ({}, {"monitoring": MONITORED}, EVERYTHING, NOTHING):
        status, out, said = helm("lint", "--strict", str(CHART), values=values)
        if status:
            found.append(f"lint: {out}{said}")
        renderings = {}
        for kubernetes in ("1.30.0", "1.37.0"):
            status, out, said = template(kubernetes, values=values)
            if status:
                found.append(f"{kubernetes}: {said}")
                continue
            renderings[out] = [resource for resource in yaml.safe_load_all(out) if resource]
        for built in renderings.values():
            found += by_schema(built)
            found += own_problems(built, values, rules, dashboard)
            for monitor in (r for r in built if r["kind"] == "ServiceMonitor"):
                monitor["spec"]["endpoints"][0]["intervall"] = "15s"
                if not any(by_schema([monitor])):
                    found.append("a typo in a ServiceMonitor is not noticed")
    found += differences(kustomize, {})
    found += [f"the difference of {values} is not noticed" for values in DIFFERENT if not any(differences(kustomize, values))]
    for fault, values, config, words in REFUSED:
        status, _, said = template("1.30.0", values=values, config=config)
        if not status or words not in said:
            found.append(f"{fault}: exit {status}, and {words!r} is not in: {said}")
    return [f"{CHART}: {problem}" for problem in found]


def own_problems(built, values, rules, dashboard):
    # The migration has its ConfigMap twice: hooks come before the release.
    own = [r for r in built if not (r["kind"] == "ConfigMap" and r["metadata"]["name"].endswith("-migrate"))]
    known = {"ConfigMap": ["ca"], "Secret": []}
    hooks = [r for r in built if r not in own]
    stubs = [{"kind": kind, "metadata": {"name": name}, "data": {}} for kind, names in known.items() for name in names]
    config = tomllib.loads(next(r for r in own if r["kind"] == "ConfigMap")["data"]["outbox-relay.toml"])
    yield from promises.shared_problems(own + plain(hooks) + stubs, config, linked(rules, values), dashboard)
    for resource in built:
        if resource["metadata"].get("labels", {}).get("app.kubernetes.io/instance") != "outbox-relay":
            yield f"{resource['kind']} {resource['metadata']['name']} does not say which release it is of"


def linked(rules, values):
    base = values.get("monitoring", {}).get("rules", {}).get("runbookBase", "")
    other = copy.deepcopy(rules)
    for rule in (rule for group in other["groups"] for rule in group["rules"]):
        if base and "annotations" in rule:
            rule["annotations"]["runbook_url"] = f"{base}/{rule['annotations']['runbook_url']}"
    return other


def plain(resources):
    """Without what marks a ConfigMap as the relay's."""
    return [{"kind": r["kind"], "metadata": r["metadata"], "data": {}} for r in resources]


def differences(kustomize, values):
    """The chart with its defaults and the overlay prod, which has the same configuration: equal but for names of the release."""
    overlay = pathlib.Path("deploy/kubernetes/overlays/prod")
    left = {key(r): essence(r) for r in kustomize(overlay) + kustomize(overlay / "migrate")}
    _, out, _ = template("1.30.0", values={"monitoring": MONITORED, **values})
    right = {key(r): essence(r) for r in yaml.safe_load_all(out) if r}
    # The chart has a Service and a monitor of it, where kustomize has a monitor of the pods.
    pods, services = left.pop("PodMonitor outbox-relay"), right.pop("ServiceMonitor outbox-relay")
    right.pop("Service outbox-relay-metrics")
    if pods["spec"]["podMetricsEndpoints"] != services["spec"]["endpoints"]:
        yield "the two monitors do not ask alike"
    if right.pop("ConfigMap outbox-relay-migrate") != right.get("ConfigMap outbox-relay"):
        yield "the migration has another configuration than the release"
    for name in sorted(left.keys() | right.keys()):
        if left.get(name) != right.get(name):
            yield f"{name} is not what kustomize makes:\n{yaml.safe_dump([left.get(name), right.get(name)])}"


def key(resource):
    name = resource["metadata"]["name"]
    if resource["kind"] == "ConfigMap" and "outbox-relay.toml" in resource["data"] and not name.endswith("-migrate"):
        name = "outbox-relay"
    return f"{resource['kind']} {name}"


def essence(resource):
    """What a resource does: without its labels, and what only one of the two names or leaves to a default."""
    kept = {field: value for field, value in copy.deepcopy(resource).items() if field not in ("metadata", "apiVersion", "kind")}
    if resource["kind"] == "ServiceAccount":  # there, an annotation is an identity at a cloud
        kept["annotations"] = resource["metadata"].get("annotations", {})
    return simplified(kept)


def simplified(value):
    if isinstance(value, list):
        return [simplified(item) for item in value]
    if not isinstance(value, dict):
        return value
    dropped = ("app.kubernetes.io/instance", "outbox-relay/config-sha256", "creationTimestamp")
    kept = {key: simplified(item) for key, item in value.items() if key not in dropped}
    if kept.get("imagePullPolicy") == "IfNotPresent":
        del kept["imagePullPolicy"]
    if "configMap" in kept:
        kept["configMap"] = "the relay's configuration"
    return {key: item for key, item in kept.items() if (key, item) not in (("annotations", {}), ("metadata", {}))}
