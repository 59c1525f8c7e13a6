// Package client drives stock clients of ECS, as their makers ship them, against a local stack: SDKs,
// AWS CLIs, a deploy tool, a workflow engine's operator. It looks from outside only and holds no code
// of the product; everything in it is tests of the lane "clients". Nothing imports it.
package client
