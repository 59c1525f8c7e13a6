"""Apache Airflow's own operators register a definition and run it to its end, and its executor for ECS
asks, as it does before a scheduler starts, whether it could work. No scheduler, no database."""

import os
import sys
from types import SimpleNamespace

from airflow.providers.amazon.aws.exceptions import EcsTaskFailToStart
from airflow.providers.amazon.aws.executors.ecs.ecs_executor import AwsEcsExecutor
from airflow.providers.amazon.aws.operators.ecs import EcsRegisterTaskDefinitionOperator, EcsRunTaskOperator

cluster, family = os.environ["CLUSTER"], "airflow-batch"

pushed = {}
instance = SimpleNamespace(dag_id="nightly", task_id="batch", run_id="1", map_index=-1,
                           xcom_push=lambda key, value: pushed.__setitem__(key, value))
context = {"ti": instance, "task_instance": instance}


def want(condition, what):
    if not condition:
        sys.exit(f"airflow: not so: {what}")


def run(*command):
    """Run one task; reattach has the operator first look for a run of its own, by startedBy."""
    operator = EcsRunTaskOperator(
        task_id="batch", aws_conn_id=None, cluster=cluster, task_definition=family, launch_type="EC2", reattach=True,
        overrides={"containerOverrides": [{"name": "main", "command": list(command)}]}, waiter_delay=2)
    operator.execute(context)
    return operator


EcsRegisterTaskDefinitionOperator(
    task_id="register", aws_conn_id=None, family=family,
    container_definitions=[{"name": "main", "image": os.environ["IMAGE"], "memory": 16, "command": ["true"]}],
    register_task_kwargs={"networkMode": "none"}).execute(context)
want("task_definition_arn" in pushed, f"the definition's ARN is known: {pushed}")

done = run("sh", "-c", "sleep 1; exit 0")
want(pushed["ecs_task_arn"] == done.arn, f"the task's ARN is known: {pushed}")
print(f"airflow: ran {done.arn} to its end", flush=True)

try:
    run("sh", "-c", "exit 3")
except EcsTaskFailToStart as e:
    sys.exit(f"airflow: a task that ran is said not to have started: {e}")
except Exception as e:  # what the operator raises has changed between its versions; what it says has not
    want("'exitCode': 3" in str(e), f"a failed task fails with its exit code: {e}")
else:
    sys.exit("airflow: a task that exits with 3 did not fail")
print("airflow: a task that exits with 3 fails", flush=True)

executor = AwsEcsExecutor()
executor.check_health()
want(executor.IS_BOTO_CONNECTION_HEALTHY, "the executor finds ECS healthy")
print("airflow: the executor's health check is content", flush=True)
