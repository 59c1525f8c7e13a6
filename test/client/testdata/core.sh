#!/usr/bin/env bash
# The same as core.py, in the same order, by the AWS CLI named in $AWS, of either major version.
# shellcheck disable=SC2086 # lists of ARNs are words
set -euo pipefail
export LC_ALL=C
me=$CLIENT

ecs() { "$AWS" ecs --endpoint-url "$ENDPOINT" --output text "$@"; }
die() { echo "$me: not so: $*" >&2; exit 1; }
same() { [ "$1" = "$2" ] || die "$3: '$1', and not '$2'"; }              # same GOT WANT WHAT
has() { [[ " $1 " == *" $2 "* ]] || die "$3: '$2' is not in '$1'"; }     # has LIST ITEM WHAT
words() { tr -s '\t\n' '  ' | sed 's/ *$//'; }                           # one line of words
sorted() { tr -s ' \t' '\n' | sed '/^$/d' | sort | tr '\n' ' ' | sed 's/ *$//'; }
names() { sed 's|[^ ]*/||g'; }                                           # what follows an ARN's last slash

# pages OPERATION MEMBER …: the CLI asks for pages of one until there is no more.
pages() { local operation=$1 query=$2; shift 2; ecs "$operation" --page-size 1 --query "$query" "$@" | words; }

clusters() {
	same "$(ecs create-cluster --cluster-name "$me" --query cluster.status)" ACTIVE "a new cluster"
	same "$(ecs describe-clusters --clusters "$me" --query 'clusters[].clusterName')" "$me" "the cluster is described"
	has "$(pages list-clusters 'clusterArns[]' | names)" "$me" "the cluster is listed"
	local said
	said=$(ecs list-tasks --cluster "$me-none" 2>&1) && die "a cluster that is not there is an error"
	[[ $said == *"(ClusterNotFoundException)"* ]] || die "the error names its kind: $said"
}

tags() {
	local own
	own=$(ecs describe-clusters --clusters "$me" --query 'clusters[].clusterArn')
	ecs tag-resource --resource-arn "$own" --tags key=team,value=blue key=tier,value=1
	ecs untag-resource --resource-arn "$own" --tag-keys tier
	same "$(ecs list-tags-for-resource --resource-arn "$own" --query 'tags[].[key,value]' | words)" "team blue" "one tag is left"
}

settings() {
	ecs put-account-setting-default --name serviceLongArnFormat --value enabled >/dev/null
	same "$(ecs put-account-setting --name taskLongArnFormat --value enabled --query 'setting.[name,value]' | words)" "taskLongArnFormat enabled" "the setting"
	local all
	all=$(pages list-account-settings 'settings[].name' --effective-settings)
	has "$all" serviceLongArnFormat "a setting is listed"
	has "$all" taskLongArnFormat "a setting is listed"
	ecs delete-account-setting --name taskLongArnFormat >/dev/null
}

definitions() {
	local family main
	main='[{"name":"main","image":"'$IMAGE'","memory":16,"stopTimeout":30,"command":["sh","-c","trap '"'exit 0'"' TERM; sleep 600 & wait"]}]'
	for family in "$me-web" "$me-web" "$me-job"; do
		ecs register-task-definition --family "$family" --network-mode none --container-definitions "$main" --tags key=team,value=blue >/dev/null
	done
	same "$(ecs describe-task-definition --task-definition "$me-web" --include TAGS --query '[taskDefinition.revision,tags[0].value]' | words)" "2 blue" "the newest"
	same "$(pages list-task-definitions 'taskDefinitionArns[]' --family-prefix "$me-web" | names | sorted)" "$me-web:1 $me-web:2" "both revisions"
	same "$(pages list-task-definition-families 'families[]' --family-prefix "$me" | sorted)" "$me-job $me-web" "both families"
}

# Instances of no agent: listed, disconnected, given no work.
instances() {
	local rack one two arn
	for rack in a b; do
		two+=" $(ecs register-container-instance --cluster "$me" --attributes "name=rack,value=$rack" \
			--total-resources name=CPU,type=INTEGER,integerValue=1024 name=MEMORY,type=INTEGER,integerValue=512 \
			--query containerInstance.containerInstanceArn)"
	done
	two=$(sorted <<<"$two")
	one=${two%% *}
	same "$(pages list-container-instances 'containerInstanceArns[]' --cluster "$me" | sorted)" "$two" "both are listed"
	same "$(ecs describe-container-instances --cluster "$me" --container-instances $two --query 'containerInstances[].agentConnected' | words)" "False False" "both are disconnected"
	same "$(ecs start-task --cluster "$me" --task-definition "$me-job" --container-instances $one --query 'failures[].reason')" AGENT "nothing starts there"
	for arn in $two; do
		ecs put-attributes --cluster "$me" --attributes "name=stack,value=blue,targetId=$arn" >/dev/null
	done
	same "$(pages list-attributes 'attributes[].targetId' --cluster "$me" --target-type container-instance --attribute-name stack | sorted)" "$two" "both have the attribute"
	ecs delete-attributes --cluster "$me" --attributes "name=stack,targetId=$one" >/dev/null
	same "$(ecs update-container-instances-state --cluster "$me" --container-instances $one --status DRAINING --query 'containerInstances[].status')" DRAINING "one drains"
	[[ $(ecs discover-poll-endpoint --cluster "$me" --query endpoint) == http* ]] || die "an endpoint is named"
	for arn in $two; do
		same "$(ecs deregister-container-instance --cluster "$me" --container-instance "$arn" --force --query containerInstance.status)" INACTIVE "it is gone"
	done
}

tasks() {
	local arns arn one never=00000000000000000000000000000000
	arns=$(ecs run-task --task-definition "$me-job" --count 2 --started-by "$me" --query 'tasks[].taskArn')
	arns+=" $(ecs start-task --task-definition "$me-job" --container-instances "$INSTANCE" --started-by "$me" --query 'tasks[].taskArn')"
	arns=$(sorted <<<"$arns")
	same "$(wc -w <<<"$arns")" 3 "three tasks"
	one=${arns%% *}
	ecs wait tasks-running --tasks $arns
	same "$(pages list-tasks 'taskArns[]' --family "$me-job" | sorted)" "$arns" "the tasks are listed"
	# Of its own tasks only an agent may tell; what is said of one that is not there is heard, and changes nothing.
	[ -n "$(ecs submit-container-state-change --task "$never" --container-name main --status RUNNING --query acknowledgment)" ] || die "it is acknowledged"
	[ -n "$(ecs submit-task-state-change --task "$never" --status RUNNING --query acknowledgment)" ] || die "it is acknowledged"
	for arn in $arns; do
		same "$(ecs stop-task --task "$arn" --reason "seen enough" --query task.desiredStatus)" STOPPED "it is to stop"
	done
	ecs wait tasks-stopped --tasks $arns
	same "$(ecs describe-tasks --tasks $one --query 'tasks[].[stopCode,stoppedReason,containers[0].exitCode]' | words)" "UserInitiated seen enough 0" "how it ended"
	same "$(ecs describe-tasks --tasks $never --query 'failures[].reason')" MISSING "a task that never was"
}

services() {
	local web=$me-web one=$me-a two=$me-b name listed
	for name in $one $two; do
		same "$(ecs create-service --service-name "$name" --task-definition "$web:1" --desired-count 1 --query 'service.[status,length(deployments)]' | words)" "ACTIVE 1" "a new service"
	done
	ecs wait services-stable --services $one $two
	listed=$(pages list-services 'serviceArns[]' | names)
	has "$listed" "$one" "a service is listed"
	has "$listed" "$two" "a service is listed"
	ecs update-service --service "$one" --task-definition "$web:2" --desired-count 2 >/dev/null
	ecs wait services-stable --services $one $two
	same "$(ecs describe-services --services "$one" --query 'services[].[runningCount,taskDefinition,deployments[0].rolloutState]' | words | names)" "2 $web:2 COMPLETED" "it was rolled"
	for name in $one $two; do
		same "$(ecs delete-service --service "$name" --force --query service.status)" DRAINING "it drains"
	done
	ecs wait services-inactive --services $one $two
}

end() {
	local arn all="$me-web:1 $me-web:2 $me-job:1"
	for arn in $all; do
		same "$(ecs deregister-task-definition --task-definition "$arn" --query taskDefinition.status)" INACTIVE "the definition"
	done
	# The CLI of Debian 12 is older than this operation.
	if "$AWS" ecs delete-task-definitions --generate-cli-skeleton >/dev/null 2>&1; then
		same "$(ecs delete-task-definitions --task-definitions $all --query '[length(taskDefinitions),length(failures)]' | words)" "3 0" "the definitions are deleted"
	fi
	same "$(ecs delete-cluster --cluster "$me" --query cluster.status)" INACTIVE "the cluster is gone"
}

for chapter in clusters tags settings definitions instances tasks services end; do
	if [ $# -gt 0 ] && [[ " $* " != *" $chapter "* ]]; then
		continue
	fi
	begun=$EPOCHREALTIME
	$chapter
	printf '%-12s %-12s %5.1f s\n' "$me" "$chapter" "$(awk "BEGIN { print $EPOCHREALTIME - $begun }")"
done
