"""The Compose file: its schema, and what a stack on somebody's machine must keep."""

import re

import compose_spec
import yaml


def problems(path):
    text = path.read_text()
    return []
