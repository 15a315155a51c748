"""Checks deploy/ offline: kustomize builds of the overlays and of every combination of components, their schemas, this
project's own rules; the Helm chart; the Dockerfile; the Compose file. Prints what is wrong and exits 1."""

import json
import pathlib
import subprocess
import sys

import yaml

import broken
import compose
import dockerfile
import helm
import rules
import schemas

DEPLOY = pathlib.Path("deploy")
# All that go together; once takes away what the others are about.
COMBINATIONS = ((), ("monitoring",), ("keda",), ("monitoring", "keda"), ("once",))


def build(directory):
    made = subprocess.run(["kubectl", "kustomize", str(directory)], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{directory}: {made.stderr}")
    return [resource for resource in yaml.safe_load_all(made.stdout) if resource]


def combination(overlay, components):
    """An overlay's settings with these components, built below target/."""
    directory = pathlib.Path("target/lint/builds", "-".join((overlay, *components)))
    directory.mkdir(parents=True, exist_ok=True)
    up = pathlib.Path(*[".."] * len(directory.parts), "deploy/kubernetes")
    used = [str(up / "components" / name) for name in components] + [str(up / "overlays" / overlay / "settings")]
    kustomization = {"resources": [str(up / "base")], "components": used}
    (directory / "kustomization.yaml").write_text(json.dumps(kustomization))
    return build(directory)


def builds():
    overlays = sorted(path.name for path in (DEPLOY / "kubernetes/overlays").iterdir())
    for overlay in overlays:
        for path in ("", "migrate"):
            yield f"{overlay}/{path}".rstrip("/"), build(DEPLOY / "kubernetes/overlays" / overlay / path)
        for components in COMBINATIONS:
            yield " + ".join((overlay, *components)), combination(overlay, components)


def main():
    sources = (
        yaml.safe_load((DEPLOY / "prometheus/rules.yaml").read_text()),
        (DEPLOY / "grafana/outbox-relay.json").read_text(),
    )

    def by_schema(resources):
        for resource in resources:
            for problem in schemas.problems(resource):
                yield f"{resource.get('kind')} {resource['metadata']['name']}: {problem}"

    def by_rule(resources):
        return rules.problems(resources, *sources)

    wrong, checked, refused = [], 0, set()
    unused = {path.name for path in (DEPLOY / "kubernetes/components").iterdir()} - set(sum(COMBINATIONS, ()))
    wrong += [f"components/{name} is in no combination" for name in unused]
    for name, resources in builds():
        checked += 1
        wrong += [f"{name}: {problem}" for problem in (*by_schema(resources), *by_rule(resources))]
        for check, breaks in ((by_schema, broken.BY_SCHEMA), (by_rule, broken.BY_RULE)):
            for fault, damaged in broken.broken(resources, [b for b in breaks if b[0] not in refused]):
                refused.add(fault)
                if not any(check(damaged)):
                    wrong.append(f"{name}: nobody notices {fault}")
    wrong += [f"never tried: {b[0]}" for b in broken.BY_SCHEMA + broken.BY_RULE if b[0] not in refused]
    wrong += helm.problems(build, by_schema, *sources)
    wrong += compose.problems(DEPLOY / "compose.yaml")
    wrong += dockerfile.problems(DEPLOY / "Dockerfile")
    hadolint = subprocess.run(["hadolint", str(DEPLOY / "Dockerfile")], capture_output=True, text=True)
    wrong += hadolint.stdout.splitlines() + hadolint.stderr.splitlines()
    if wrong:
        sys.exit("\n".join(wrong))
    refusals = len(refused) + len(compose.BREAKS) + len(dockerfile.BREAKS) + len(helm.REFUSED) + len(helm.DIFFERENT)
    print(f"deploy: {checked} builds, the chart, Dockerfile and compose.yaml are in order; {refusals} broken ones were refused")


main()
