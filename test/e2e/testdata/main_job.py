"""The main job through boto3, unpatched: register, run, wait, describe."""

import json
import os

import boto3

ecs = boto3.client("ecs", endpoint_url=os.environ["LONGSHORE_ENDPOINT"])
with open(os.path.join("examples", "taskdefs", "12-minimal-and-defaults.json")) as f:
    given = json.load(f)
registered = ecs.register_task_definition(**given)["taskDefinition"]
name = f"{registered['family']}:{registered['revision']}"
echoed = ecs.describe_task_definition(taskDefinition=name)["taskDefinition"]
for member, value in given["containerDefinitions"][0].items():
    assert echoed["containerDefinitions"][0][member] == value, member

override = {"containerOverrides": [{"name": "hello", "command": ["sleep", "30"]}]}
long = ecs.run_task(taskDefinition=name, overrides=override, startedBy="boto3")["tasks"][0]["taskArn"]
ecs.get_waiter("tasks_running").wait(tasks=[long], WaiterConfig={"Delay": 1, "MaxAttempts": 30})
assert ecs.list_tasks(startedBy="boto3")["taskArns"] == [long]
ecs.stop_task(task=long, reason="enough")

short = ecs.run_task(taskDefinition=name)["tasks"][0]["taskArn"]
ecs.get_waiter("tasks_stopped").wait(tasks=[short, long], WaiterConfig={"Delay": 1, "MaxAttempts": 60})
for task in ecs.describe_tasks(tasks=[short, long])["tasks"]:
    for time in ("createdAt", "pullStartedAt", "pullStoppedAt", "startedAt", "stoppingAt", "executionStoppedAt", "stoppedAt"):
        assert task[time] is not None, time
    if task["taskArn"] == long:
        assert task["stopCode"] == "UserInitiated" and task["stoppedReason"] == "enough", task
    else:
        print("exit code", task["containers"][0]["exitCode"])
