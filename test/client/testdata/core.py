"""Every core operation of ECS, all waiters and all paginators, by boto3.

core.mjs, core.sh and gosdk_test.go do the same in the same order. The test gives what is needed as
variables; without arguments every chapter runs, with arguments those.
"""

import os
import sys
import time

import boto3
from botocore.exceptions import ClientError

me, endpoint, image, instance = (os.environ[n] for n in ("CLIENT", "ENDPOINT", "IMAGE", "INSTANCE"))
ecs = boto3.client("ecs", endpoint_url=endpoint)


def want(condition, what):
    if not condition:
        sys.exit(f"{me}: not so: {what}")


def pages(operation, member, **args):
    """What a paginator lists one by one."""
    found, count = [], 0
    for page in ecs.get_paginator(operation).paginate(**args, PaginationConfig={"PageSize": 1}):
        want(len(page[member]) <= 1, f"{operation}: a page has no more than maxResults: {page[member]}")
        found += page[member]
        count += 1
    want(count > 1, f"{operation} has more than one page")
    return found


def wait(waiter, **args):
    """The waiter of the SDK, in its own pace."""
    ecs.get_waiter(waiter).wait(**args)


def clusters():
    own = ecs.create_cluster(clusterName=me)["cluster"]
    want(own["status"] == "ACTIVE" and own["clusterArn"].endswith(f":cluster/{me}"), f"a new cluster: {own}")
    want(ecs.describe_clusters(clusters=[me])["clusters"][0]["clusterName"] == me, "the cluster is described")
    listed = pages("list_clusters", "clusterArns")
    want(own["clusterArn"] in listed, f"the cluster is listed: {listed}")
    try:
        ecs.list_tasks(cluster=f"{me}-none")
        want(False, "a cluster that is not there is an error")
    except ecs.exceptions.ClusterNotFoundException as e:
        want(e.response["Error"]["Code"] == "ClusterNotFoundException", f"the error's code: {e.response}")


def tags():
    own = ecs.describe_clusters(clusters=[me])["clusters"][0]["clusterArn"]
    ecs.tag_resource(resourceArn=own, tags=[{"key": "team", "value": "blue"}, {"key": "tier", "value": "1"}])
    ecs.untag_resource(resourceArn=own, tagKeys=["tier"])
    got = ecs.list_tags_for_resource(resourceArn=own)["tags"]
    want(got == [{"key": "team", "value": "blue"}], f"one tag is left: {got}")


def settings():
    ecs.put_account_setting_default(name="serviceLongArnFormat", value="enabled")
    got = ecs.put_account_setting(name="taskLongArnFormat", value="enabled")["setting"]
    want((got["name"], got["value"]) == ("taskLongArnFormat", "enabled"), f"the setting: {got}")
    names = [s["name"] for s in pages("list_account_settings", "settings", effectiveSettings=True)]
    want({"serviceLongArnFormat", "taskLongArnFormat"} <= set(names), f"both are listed: {names}")
    ecs.delete_account_setting(name="taskLongArnFormat")


def definitions():
    main = {"name": "main", "image": image, "memory": 16, "stopTimeout": 30,
            "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"]}
    for family in (f"{me}-web", f"{me}-web", f"{me}-job"):
        ecs.register_task_definition(family=family, networkMode="none", containerDefinitions=[main],
                                     tags=[{"key": "team", "value": "blue"}])
    got = ecs.describe_task_definition(taskDefinition=f"{me}-web", include=["TAGS"])
    want(got["taskDefinition"]["revision"] == 2 and got["tags"] == [{"key": "team", "value": "blue"}], f"the newest: {got}")
    arns = pages("list_task_definitions", "taskDefinitionArns", familyPrefix=f"{me}-web")
    want([a.split("/")[-1] for a in arns] == [f"{me}-web:1", f"{me}-web:2"], f"both revisions: {arns}")
    families = pages("list_task_definition_families", "families", familyPrefix=me)
    want(sorted(families) == [f"{me}-job", f"{me}-web"], f"both families: {families}")


def instances():
    """Instances of no agent: listed, disconnected, given no work."""
    two = [ecs.register_container_instance(
        cluster=me, totalResources=[{"name": "CPU", "type": "INTEGER", "integerValue": 1024},
                                    {"name": "MEMORY", "type": "INTEGER", "integerValue": 512}],
        attributes=[{"name": "rack", "value": rack}])["containerInstance"]["containerInstanceArn"] for rack in ("a", "b")]
    want(sorted(pages("list_container_instances", "containerInstanceArns", cluster=me)) == sorted(two), "both are listed")
    got = ecs.describe_container_instances(cluster=me, containerInstances=two)["containerInstances"]
    want([i["agentConnected"] for i in got] == [False, False], f"both are disconnected: {got}")
    failures = ecs.start_task(cluster=me, taskDefinition=f"{me}-job", containerInstances=two[:1])["failures"]
    want([f["reason"] for f in failures] == ["AGENT"], f"nothing starts there: {failures}")
    ecs.put_attributes(cluster=me, attributes=[{"name": "stack", "value": "blue", "targetId": t} for t in two])
    found = pages("list_attributes", "attributes", cluster=me, targetType="container-instance", attributeName="stack")
    want(sorted(a["targetId"] for a in found) == sorted(two), f"both have the attribute: {found}")
    ecs.delete_attributes(cluster=me, attributes=[{"name": "stack", "targetId": two[0]}])
    got = ecs.update_container_instances_state(cluster=me, containerInstances=two[:1], status="DRAINING")["containerInstances"]
    want(got[0]["status"] == "DRAINING", f"one drains: {got}")
    want(ecs.discover_poll_endpoint(cluster=me)["endpoint"], "an endpoint is named")
    for arn in two:
        got = ecs.deregister_container_instance(cluster=me, containerInstance=arn, force=True)["containerInstance"]
        want(got["status"] == "INACTIVE", f"it is gone: {got}")


def tasks():
    job, never = f"{me}-job", "0" * 32
    run = ecs.run_task(taskDefinition=job, count=2, startedBy=me)
    start = ecs.start_task(taskDefinition=job, containerInstances=[instance], startedBy=me)
    want(run["failures"] == [] and start["failures"] == [], f"no failures: {run} {start}")
    arns = [t["taskArn"] for t in run["tasks"] + start["tasks"]]
    wait("tasks_running", tasks=arns)
    want(sorted(pages("list_tasks", "taskArns", family=job)) == sorted(arns), "the tasks are listed")
    # Of its own tasks only an agent may tell; what is said of one that is not there is heard, and changes nothing.
    told = [
        ecs.submit_container_state_change(task=never, containerName="main", status="RUNNING"),
        ecs.submit_task_state_change(task=never, status="RUNNING"),
    ]
    want(all(t["acknowledgment"] for t in told), f"what is submitted is acknowledged: {told}")
    for arn in arns:
        want(ecs.stop_task(task=arn, reason="seen enough")["task"]["desiredStatus"] == "STOPPED", "it is to stop")
    wait("tasks_stopped", tasks=arns)
    for task in ecs.describe_tasks(tasks=arns)["tasks"]:
        want(task["stopCode"] == "UserInitiated" and task["stoppedReason"] == "seen enough", f"why it ended: {task}")
        want([c["exitCode"] for c in task["containers"]] == [0], f"how it ended: {task}")
    missing = ecs.describe_tasks(tasks=[never])["failures"]
    want([f["reason"] for f in missing] == ["MISSING"], f"a task that never was: {missing}")


def services():
    web, two = f"{me}-web", [f"{me}-a", f"{me}-b"]
    for name in two:
        made = ecs.create_service(serviceName=name, taskDefinition=f"{web}:1", desiredCount=1)["service"]
        want(made["status"] == "ACTIVE" and len(made["deployments"]) == 1, f"a new service: {made}")
    wait("services_stable", services=two)
    listed = {a.split("/")[-1] for a in pages("list_services", "serviceArns")}
    want(set(two) <= listed, f"the services are listed: {listed}")
    ecs.update_service(service=two[0], taskDefinition=f"{web}:2", desiredCount=2)
    wait("services_stable", services=two)
    got = ecs.describe_services(services=two)["services"][0]
    want(got["runningCount"] == 2 and got["taskDefinition"].endswith(f"{web}:2"), f"it was rolled: {got}")
    want([d["rolloutState"] for d in got["deployments"]] == ["COMPLETED"], f"its rollout is done: {got['deployments']}")
    for name in two:
        want(ecs.delete_service(service=name, force=True)["service"]["status"] == "DRAINING", "it drains")
    wait("services_inactive", services=two)


def end():
    arns = [f"{me}-web:1", f"{me}-web:2", f"{me}-job:1"]
    for arn in arns:
        got = ecs.deregister_task_definition(taskDefinition=arn)["taskDefinition"]["status"]
        want(got == "INACTIVE", f"the definition is {got}")
    got = ecs.delete_task_definitions(taskDefinitions=arns)
    want(got["failures"] == [] and len(got["taskDefinitions"]) == 3, f"the definitions are deleted: {got}")
    want(ecs.delete_cluster(cluster=me)["cluster"]["status"] == "INACTIVE", "the cluster is gone")


chapters = (clusters, tags, settings, definitions, instances, tasks, services, end)
for chapter in chapters:
    if sys.argv[1:] and chapter.__name__ not in sys.argv[1:]:
        continue
    begun = time.monotonic()
    try:
        chapter()
    except ClientError as e:
        sys.exit(f"{me}: {chapter.__name__}: {e.operation_name}: {e}")
    print(f"{me:12} {chapter.__name__:12} {time.monotonic() - begun:5.1f} s", flush=True)
