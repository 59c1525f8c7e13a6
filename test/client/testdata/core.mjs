// The same as core.py, in the same order, by the AWS SDK for JavaScript, version 3.
import { createRequire } from "node:module";

const { CLIENT: me, ENDPOINT: endpoint, IMAGE: image, INSTANCE: instance, MODULES } = process.env;
const sdk = createRequire(MODULES + "/")("@aws-sdk/client-ecs");
const ecs = new sdk.ECSClient({ endpoint });

// ask("RunTask", {…}) sends a RunTaskCommand.
const ask = (operation, input = {}) => ecs.send(new sdk[operation + "Command"](input));

function want(condition, what, ...shown) {
  if (!condition) throw new Error(`not so: ${what}: ${JSON.stringify(shown)}`);
}

// What a paginator lists one by one.
async function pages(operation, member, input = {}) {
  const found = [];
  let count = 0;
  for await (const page of sdk["paginate" + operation]({ client: ecs, pageSize: 1 }, input)) {
    want(page[member].length <= 1, `${operation}: a page has no more than maxResults`, page[member]);
    found.push(...page[member]);
    count++;
  }
  want(count > 1, `${operation} has more than one page`, found);
  return found;
}

// The waiter of the SDK, in its own pace.
const wait = (waiter, input) => sdk["waitUntil" + waiter]({ client: ecs, maxWaitTime: 300 }, input);

const same = (a, b) => JSON.stringify([...a].sort()) === JSON.stringify([...b].sort());
const last = (arn) => arn.split("/").pop();

const chapters = {
  async clusters() {
    const { cluster } = await ask("CreateCluster", { clusterName: me });
    want(cluster.status === "ACTIVE" && cluster.clusterArn.endsWith(`:cluster/${me}`), "a new cluster", cluster);
    want((await ask("DescribeClusters", { clusters: [me] })).clusters[0].clusterName === me, "the cluster is described");
    want((await pages("ListClusters", "clusterArns")).includes(cluster.clusterArn), "the cluster is listed");
    const error = await ask("ListTasks", { cluster: `${me}-none` }).catch((e) => e);
    want(error instanceof sdk.ClusterNotFoundException, "a cluster that is not there is an error of its own", error);
  },

  async tags() {
    const resourceArn = (await ask("DescribeClusters", { clusters: [me] })).clusters[0].clusterArn;
    await ask("TagResource", { resourceArn, tags: [{ key: "team", value: "blue" }, { key: "tier", value: "1" }] });
    await ask("UntagResource", { resourceArn, tagKeys: ["tier"] });
    const { tags } = await ask("ListTagsForResource", { resourceArn });
    want(tags.length === 1 && tags[0].key === "team" && tags[0].value === "blue", "one tag is left", tags);
  },

  async settings() {
    await ask("PutAccountSettingDefault", { name: "serviceLongArnFormat", value: "enabled" });
    const { setting } = await ask("PutAccountSetting", { name: "taskLongArnFormat", value: "enabled" });
    want(setting.name === "taskLongArnFormat" && setting.value === "enabled", "the setting", setting);
    const names = (await pages("ListAccountSettings", "settings", { effectiveSettings: true })).map((s) => s.name);
    want(names.includes("serviceLongArnFormat") && names.includes("taskLongArnFormat"), "both are listed", names);
    await ask("DeleteAccountSetting", { name: "taskLongArnFormat" });
  },

  async definitions() {
    const command = ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"];
    const containerDefinitions = [{ name: "main", image, memory: 16, stopTimeout: 30, command }];
    for (const family of [`${me}-web`, `${me}-web`, `${me}-job`]) {
      await ask("RegisterTaskDefinition", { family, networkMode: "none", containerDefinitions, tags: [{ key: "team", value: "blue" }] });
    }
    const got = await ask("DescribeTaskDefinition", { taskDefinition: `${me}-web`, include: ["TAGS"] });
    want(got.taskDefinition.revision === 2 && got.tags[0].value === "blue", "the newest", got);
    const arns = await pages("ListTaskDefinitions", "taskDefinitionArns", { familyPrefix: `${me}-web` });
    want(same(arns.map(last), [`${me}-web:1`, `${me}-web:2`]), "both revisions", arns);
    const families = await pages("ListTaskDefinitionFamilies", "families", { familyPrefix: me });
    want(same(families, [`${me}-job`, `${me}-web`]), "both families", families);
  },

  // Instances of no agent: listed, disconnected, given no work.
  async instances() {
    const two = [];
    for (const value of ["a", "b"]) {
      const totalResources = [["CPU", 1024], ["MEMORY", 512]].map(([name, integerValue]) => ({ name, type: "INTEGER", integerValue }));
      const made = await ask("RegisterContainerInstance", { cluster: me, totalResources, attributes: [{ name: "rack", value }] });
      two.push(made.containerInstance.containerInstanceArn);
    }
    want(same(await pages("ListContainerInstances", "containerInstanceArns", { cluster: me }), two), "both are listed");
    const got = (await ask("DescribeContainerInstances", { cluster: me, containerInstances: two })).containerInstances;
    want(got.length === 2 && got.every((i) => i.agentConnected === false), "both are disconnected", got);
    const { failures } = await ask("StartTask", { cluster: me, taskDefinition: `${me}-job`, containerInstances: [two[0]] });
    want(same(failures.map((f) => f.reason), ["AGENT"]), "nothing starts there", failures);
    await ask("PutAttributes", { cluster: me, attributes: two.map((targetId) => ({ name: "stack", value: "blue", targetId })) });
    const found = await pages("ListAttributes", "attributes", { cluster: me, targetType: "container-instance", attributeName: "stack" });
    want(same(found.map((a) => a.targetId), two), "both have the attribute", found);
    await ask("DeleteAttributes", { cluster: me, attributes: [{ name: "stack", targetId: two[0] }] });
    const drained = await ask("UpdateContainerInstancesState", { cluster: me, containerInstances: [two[0]], status: "DRAINING" });
    want(drained.containerInstances[0].status === "DRAINING", "one drains", drained);
    want((await ask("DiscoverPollEndpoint", { cluster: me })).endpoint, "an endpoint is named");
    for (const containerInstance of two) {
      const gone = (await ask("DeregisterContainerInstance", { cluster: me, containerInstance, force: true })).containerInstance;
      want(gone.status === "INACTIVE", "it is gone", gone);
    }
  },

  async tasks() {
    const taskDefinition = `${me}-job`;
    const never = "0".repeat(32);
    const run = await ask("RunTask", { taskDefinition, count: 2, startedBy: me });
    const start = await ask("StartTask", { taskDefinition, containerInstances: [instance], startedBy: me });
    want(run.failures.length === 0 && start.failures.length === 0, "no failures", run, start);
    const tasks = [...run.tasks, ...start.tasks].map((t) => t.taskArn);
    await wait("TasksRunning", { tasks });
    want(same(await pages("ListTasks", "taskArns", { family: taskDefinition }), tasks), "the tasks are listed");
    // Of its own tasks only an agent may tell; what is said of one that is not there is heard, and changes nothing.
    const told = [
      await ask("SubmitContainerStateChange", { task: never, containerName: "main", status: "RUNNING" }),
      await ask("SubmitTaskStateChange", { task: never, status: "RUNNING" }),
    ];
    want(told.every((t) => t.acknowledgment), "what is submitted is acknowledged", told);
    for (const task of tasks) {
      const stopping = (await ask("StopTask", { task, reason: "seen enough" })).task;
      want(stopping.desiredStatus === "STOPPED", "it is to stop", stopping);
    }
    await wait("TasksStopped", { tasks });
    for (const task of (await ask("DescribeTasks", { tasks })).tasks) {
      want(task.stopCode === "UserInitiated" && task.stoppedReason === "seen enough", "why it ended", task);
      want(same(task.containers.map((c) => c.exitCode), [0]) && task.stoppedAt instanceof Date, "how it ended", task);
    }
    const { failures } = await ask("DescribeTasks", { tasks: [never] });
    want(same(failures.map((f) => f.reason), ["MISSING"]), "a task that never was", failures);
  },

  async services() {
    const web = `${me}-web`;
    const services = [`${me}-a`, `${me}-b`];
    for (const serviceName of services) {
      const made = (await ask("CreateService", { serviceName, taskDefinition: `${web}:1`, desiredCount: 1 })).service;
      want(made.status === "ACTIVE" && made.deployments.length === 1, "a new service", made);
    }
    await wait("ServicesStable", { services });
    const listed = (await pages("ListServices", "serviceArns")).map(last);
    want(services.every((s) => listed.includes(s)), "the services are listed", listed);
    await ask("UpdateService", { service: services[0], taskDefinition: `${web}:2`, desiredCount: 2 });
    await wait("ServicesStable", { services });
    const got = (await ask("DescribeServices", { services })).services[0];
    want(got.runningCount === 2 && got.taskDefinition.endsWith(`${web}:2`), "it was rolled", got);
    want(same(got.deployments.map((d) => d.rolloutState), ["COMPLETED"]), "its rollout is done", got.deployments);
    for (const service of services) {
      want((await ask("DeleteService", { service, force: true })).service.status === "DRAINING", "it drains");
    }
    await wait("ServicesInactive", { services });
  },

  async end() {
    const taskDefinitions = [`${me}-web:1`, `${me}-web:2`, `${me}-job:1`];
    for (const taskDefinition of taskDefinitions) {
      const got = (await ask("DeregisterTaskDefinition", { taskDefinition })).taskDefinition;
      want(got.status === "INACTIVE", "the definition is inactive", got);
    }
    const got = await ask("DeleteTaskDefinitions", { taskDefinitions });
    want(got.failures.length === 0 && got.taskDefinitions.length === 3, "the definitions are deleted", got);
    want((await ask("DeleteCluster", { cluster: me })).cluster.status === "INACTIVE", "the cluster is gone");
  },
};

const wanted = process.argv.slice(2);
for (const [name, chapter] of Object.entries(chapters)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const begun = performance.now();
  await chapter();
  console.log(`${me.padEnd(12)} ${name.padEnd(12)} ${((performance.now() - begun) / 1000).toFixed(1).padStart(5)} s`);
}
