"""Manifests broken on purpose: a check that passes one of them is no check. The first list must be refused by the schemas
alone, the second by this project's rules."""

import copy

# A name, the kind to break, where, and what to write there; None takes the key away.
BY_SCHEMA = [
    ("a typo in a core field", "Deployment", ("spec", "template", "spec", "terminationGracePeriodSecond"), 45),
    ("a core field of the wrong type", "Deployment", ("spec", "replicas"), "three"),
    ("a typo in a budget", "PodDisruptionBudget", ("spec", "maxUnavailabel"), 1),
    ("a kind that nobody knows", "PodDisruptionBudget", ("kind",), "PodDisruptionBudgets"),
    ("a typo in a PodMonitor", "PodMonitor", ("spec", "podMetricsEndpoint"), []),
    ("a typo deep in a PodMonitor", "PodMonitor", ("spec", "podMetricsEndpoints", 0, "intervall"), "15s"),
    ("a bad duration in a PodMonitor", "PodMonitor", ("spec", "podMetricsEndpoints", 0, "interval"), "15 s"),
    ("a typo in a PrometheusRule", "PrometheusRule", ("spec", "group"), []),
    ("a typo in a ScaledObject", "ScaledObject", ("spec", "maxReplicas"), 3),
    ("a trigger without a type", "ScaledObject", ("spec", "triggers", 0, "type"), None),
]
BY_RULE = [
    ("more replicas than cursors", "ScaledObject", ("spec", "maxReplicaCount"), 99),
    ("a pod killed within its grace", "Deployment", ("spec", "template", "spec", "terminationGracePeriodSeconds"), 25),
    ("a root that can be written", "Deployment",
     ("spec", "template", "spec", "containers", 0, "securityContext", "readOnlyRootFilesystem"), False),
    ("a CPU limit", "Deployment",
     ("spec", "template", "spec", "containers", 0, "resources", "limits", "cpu"), "1"),
    ("a budget for nobody", "PodDisruptionBudget", ("spec", "selector", "matchLabels"), {"app": "other"}),
    ("other rules than the source's", "PrometheusRule", ("spec", "groups"), [{"name": "mine"}]),
]


def broken(build, breaks):
    """Each break that fits the build, and the broken build."""
    for name, kind, path, value in breaks:
        other = copy.deepcopy(build)
        for resource in other:
            if resource["kind"] == kind:
                place = resource
                for step in path[:-1]:
                    place = place[step]
                if value is None:
                    del place[path[-1]]
                else:
                    place[path[-1]] = value
                yield name, other
                break
