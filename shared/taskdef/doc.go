// Package taskdef is the task definition: ECS's own shapes under ECS's own JSON names, and every rule about them.
//
// What it does, all of it as pure functions:
//
//	Decode(body)              a RegisterTaskDefinition body, strictly: every unknown member, wrong type, unsupported
//	                          member and broken rule at once, as Faults
//	Validate(in)              the same judgement on an Input made in Go
//	Echo(in, registration)    the TaskDefinition that is stored and described, with ECS's defaults filled in
//	Canonical(def)            its storage form: compact JSON, members in a fixed order, loss-free
//	ParseStored(data)         and back
//	DecodeOverride(data)      the overrides of RunTask and StartTask, as strictly
//	Apply(def, override)      the definition a task really runs
//	Needs(def, override)      what a task takes from an instance: CPU, memory, static ports, GPUs
//	EchoOverride(def, over)   the overrides as DescribeTasks shows them
//	ValidateTags(path, tags)  the limits of tags, for every resource that has them
//	ParseReference, ARN       family, family:revision or ARN
//
// What is supported is data: Members and OverrideMembers name every member ECS has, each with a State (Run, Later,
// Never) and a reason; a member that is not Run is refused by its path and never dropped. When the agent learns a
// member, flipping its entry in table.go is the whole change. A refused member is let through while it asks for nothing
// (null, false, "", [] or {}), because clients send back what they were shown.
//
// Optional scalars whose zero differs from absence are pointers; optional strings are not, as "" and absence mean the
// same in ECS. A nil list is absent, an empty one is written as [].
//
// What it does not do: no I/O, no clock, no log, no judgement of who may use a role, of images or of instances. Who may import it: anyone.
// Placement expressions are in the sub-package query.
package taskdef
