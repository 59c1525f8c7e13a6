// Package strict holds answers of the ECS API against the model that AWS publishes of it: the service-2.json of
// botocore, from which the AWS CLI and boto3 are made. Stock clients forgive much, each something else; what this
// package passes none of them has to forgive. Check judges one answer, Proxy every answer that passes through it.
//
// It has no model of its own and no copy of AWS's: it reads the one that the pinned tools brought. Only tests may
// import it.
package strict

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Model is a service as botocore describes it.
type Model struct {
	Operations map[string]Operation `json:"operations"`
	Shapes     map[string]Shape     `json:"shapes"`
}

// Operation names the shapes of what goes in, what comes out, and what may go wrong.
type Operation struct {
	Input  Reference   `json:"input"`
	Output Reference   `json:"output"`
	Errors []Reference `json:"errors"`
}

// Reference names a shape.
type Reference struct {
	Shape string `json:"shape"`
}

// Shape is a type of the model. What it is decides which members are set: Members of a structure, Member of a list,
// Value of a map, Enum of a string with choices.
type Shape struct {
	Type     string               `json:"type"`
	Members  map[string]Reference `json:"members"`
	Required []string             `json:"required"`
	Member   Reference            `json:"member"`
	Value    Reference            `json:"value"`
	Enum     []string             `json:"enum"`
	Union    bool                 `json:"union"`
	Document bool                 `json:"document"`
	Fault    bool                 `json:"fault"`
}

// Read reads a model, as it is or compressed by gzip.
func Read(from io.Reader) (*Model, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("unzip model: %w", err)
		}
		if data, err = io.ReadAll(unzipped); err != nil {
			return nil, fmt.Errorf("unzip model: %w", err)
		}
	}
	m := &Model{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("decode model: %w", err)
	}
	return m, m.whole()
}

// whole is an error if the model names a shape that it does not have: judged by half a model everything passes.
func (m *Model) whole() error {
	if len(m.Operations) == 0 {
		return errors.New("the model has no operations")
	}
	var all []Reference
	for _, o := range m.Operations {
		all = append(append(all, o.Input, o.Output), o.Errors...)
	}
	for _, s := range m.Shapes {
		all = append(slices.AppendSeq(all, maps.Values(s.Members)), s.Member, s.Value)
	}
	for _, r := range all {
		if _, ok := m.Shapes[r.Shape]; !ok && r.Shape != "" {
			return fmt.Errorf("the model names the shape %s and does not have it", r.Shape)
		}
	}
	return nil
}

// ErrMissing says that the pinned tools are not installed. It is never a reason to skip a test.
var ErrMissing = errors.New("botocore's model of ECS is not installed; run: make tools")

// Pinned reads the model of the botocore that is pinned in tools/requirements.txt, from the .tools of the project
// that holds the working directory.
func Pinned() (*Model, error) {
	const below = ".tools/venv/lib/python3*/site-packages/botocore/data/ecs/*/service-2.json*"
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if found, _ := filepath.Glob(filepath.Join(dir, below)); len(found) > 0 {
			return open(found[len(found)-1])
		}
		if dir == filepath.Dir(dir) {
			return nil, ErrMissing
		}
	}
}

func open(name string) (*Model, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	defer f.Close()
	return Read(f)
}

// Errors lists the names of the exceptions that an operation may answer, sorted.
func (m *Model) Errors(operation string) []string {
	var names []string
	for _, r := range m.Operations[operation].Errors {
		names = append(names, r.Shape)
	}
	slices.Sort(names)
	return names
}

// operationOf is the operation that a request's X-Amz-Target names.
func operationOf(target string) string {
	return target[strings.LastIndexByte(target, '.')+1:]
}
