package ecsapi

import "reflect"

// Shapes are the types that an operation takes and answers. The first is nil for
// a request that another package decodes.
func Shapes(name string) (in, out reflect.Type) { return operations[name].in, operations[name].out }

// Refusals is why operations are not done.
func Refusals() map[string]string { return refusals }

// ModelsUnsupported are the operations that are refused as unsupported features.
func ModelsUnsupported() []string { return modelsUnsupported }
