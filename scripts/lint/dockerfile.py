"""The Dockerfile, beyond what hadolint asks: bases of others by digest, and the label that names the one shipped."""

import re

# What to break, and how: a check that passes one of them is no check.
BREAKS = [
    ("a base without its digest", r"(FROM debian:\S+)@sha256:\S+", r"\1"),
    ("a frontend that is fetched by tag", r"\A", "# syntax=docker/dockerfile:1\n"),
    ("a label of another base", r'(base\.name="docker\.io/library/debian:)', r"\g<1>13-"),
]


def problems(path):
    text = path.read_text()
    found = list(find(text))
    for fault, pattern, replacement in BREAKS:
        broken = re.sub(pattern, replacement, text, count=1)
        if broken == text or not any(find(broken)):
            found.append(f"nobody notices {fault}")
    return [f"{path}: {problem}" for problem in found]


def find(text):
    stages, bases = set(), []
    for base, stage in re.findall(r"^FROM (\S+) AS (\S+)$", text, re.MULTILINE):
        if base not in stages:
            bases.append(base)
        stages.add(stage)
    for base in bases:
        if not re.search(r":[^@]+@sha256:[0-9a-f]{64}$", base):
            yield f"base {base} has no tag and digest"
    if re.match(r"# syntax=", text):
        yield "a frontend is fetched"
    labels = re.findall(r'base\.name="docker\.io/library/([^"]+)"', text)
    if labels != [base.split("@")[0] for base in bases[-1:]]:
        yield f"label {labels} does not name the base {bases[-1:]}"
