"""The Compose file: its schema, and what a stack on somebody's machine must keep."""

import copy
import re

import yaml
from compose_spec import PyCompose

# What to break in the service relay, and how: a check that passes one of them is no check.
BREAKS = [
    ("a typo in a service", "stop_grace_perod", "45s"),
    ("a bad duration", "stop_grace_period", "45 seconds"),
    ("a wrong type", "deploy", {"replicas": "three"}),
    ("a condition that nobody knows", "depends_on", {"migrate": {"condition": "done"}}),
    ("a service that is not there", "depends_on", ["migration"]),
    ("a port open to others", "ports", ["9464:9464"]),
    ("a root that can be written", "read_only", False),
    ("a secret that is not there", "secrets", ["other"]),
    ("an image of others without a digest", "image", "postgres:15.18-bookworm"),
]
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
# Whose digest is not known: no registry could be asked, and no two others name the same one.
BY_TAG = {"prom/prometheus:v2.42.0"}


def problems(path):
    # Read here, because the schema's reader does not join what YAML merges.
    stack = yaml.safe_load(path.read_text())
    found = list(find(path.parent, stack))
    for fault, key, value in BREAKS:
        broken = copy.deepcopy(stack)
        broken["services"]["relay"][key] = value
        if not any(find(path.parent, broken)):
            found.append(f"nobody notices {fault}")
    return [f"{path}: {problem}" for problem in found]


def find(directory, stack):
    # The schema's reader refuses a tag beside a digest, which Docker takes.
    undigested = copy.deepcopy(stack)
    for service in undigested["services"].values():
        service["image"] = DIGEST.sub("", service["image"])
    try:
        PyCompose.from_yaml(yaml.safe_dump(undigested)).validate()
    except Exception as error:  # of several kinds, none of them public
        yield str(error)
        return
    for name, service in stack["services"].items():
        yield from (f"{name}: {problem}" for problem in service_problems(directory, stack, service))


def service_problems(directory, stack, service):
    tagged, digest = DIGEST.sub("", service["image"]), DIGEST.search(service["image"])
    if not re.search(r":[^/:@]+$", tagged) or tagged.endswith(":latest"):
        yield f"image {service['image']} has no tag of its own"
    if not digest and tagged not in BY_TAG and not tagged.startswith("outbox-relay"):
        yield f"image {service['image']} has no digest"
    for port in service.get("ports", []):
        if not port.startswith("127.0.0.1:"):
            yield f"port {port} is open to others"
    if "build" in service and not (service.get("read_only") and service.get("cap_drop") == ["ALL"]):
        yield "our own images need neither a root that can be written nor capabilities"
    files = [volume.split(":")[0] for volume in service.get("volumes", []) if volume.startswith("./")]
    files += [stack["secrets"][name]["file"] for name in service.get("secrets", [])]
    yield from (f"there is no {file}" for file in files if not (directory / file).is_file())
    yield from (f"waits for {other}" for other in service.get("depends_on", []) if other not in stack["services"])
