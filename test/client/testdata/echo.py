"""A task definition is shown as it was registered.

Workflow engines (Prefect, Dagster) compare what they are about to register with what is registered, and register
anew if it differs; deploy tools register again what they were shown. Both work only if the service adds
nothing but what it is known to add, and changes nothing.
"""

import glob
import json
import os
import sys

import boto3

ecs = boto3.client("ecs", endpoint_url=os.environ["ENDPOINT"])

# What a registration adds to what was sent.
ADDED = {"taskDefinitionArn", "revision", "status", "requiresAttributes", "compatibilities", "registeredAt", "registeredBy"}
# What is shown where nothing was sent: ECS's defaults, beside what is empty.
DEFAULTS = {"cpu": 0, "essential": True, "networkMode": "bridge", "hostPort": 0, "protocol": "tcp"}


def meaning(value, within=""):
    """A definition without what says nothing: the empty and the default."""
    if isinstance(value, dict):
        pairs = ((k, meaning(v, k)) for k, v in value.items())
        return {k: v for k, v in pairs if v not in ([], {}, None) and not (k in DEFAULTS and v == DEFAULTS[k])}
    if isinstance(value, list):
        listed = [meaning(v) for v in value]
        # Maps as lists: their order means nothing.
        return sorted(listed, key=json.dumps) if within in ("environment", "secrets", "requiresCompatibilities") else listed
    return value


def difference(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for k in sorted(a.keys() | b.keys()) for d in difference(a.get(k), b.get(k), f"{path}.{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for n, (x, y) in enumerate(zip(a, b)) for d in difference(x, y, f"{path}[{n}]")]
    return [] if a == b else [f"{path}: sent {a!r}, shown {b!r}"]


registered = 0
for file in sorted(glob.glob(os.path.join(os.environ["EXAMPLES"], "*.json"))):
    name = os.path.basename(file)
    with open(file) as f:
        sent = json.load(f)
    first = ecs.register_task_definition(**sent)["taskDefinition"]
    registered += 1
    got = ecs.describe_task_definition(taskDefinition=first["taskDefinitionArn"], include=["TAGS"])
    shown = {k: v for k, v in got["taskDefinition"].items() if k not in ADDED} | {"tags": got.get("tags", [])}
    wrong = difference(meaning(sent), meaning(shown))

    # What was shown can be registered as it is, and means the same then.
    again = ecs.register_task_definition(**shown)["taskDefinition"]
    if again["revision"] != first["revision"] + 1:
        wrong.append(f"the next revision is {again['revision']}")
    wrong += difference(shown, {k: v for k, v in again.items() if k not in ADDED} | {"tags": shown["tags"]}, "again")
    if wrong:
        sys.exit(f"echo: {name}: " + "; ".join(wrong))
    print(f"echo: {name}: shown as it was sent, and taken as it was shown", flush=True)
print(f"echo: {registered} definitions")
if registered != 7:
    sys.exit("echo: there are seven examples")
