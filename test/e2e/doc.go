// Package e2e proves the main job end to end: on a local stack with the real
// CDK stack in the AWS emulator, real agents and a real Docker engine, through
// stock clients. It holds tests alone.
package e2e
