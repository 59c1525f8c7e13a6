package controltest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
)

func TestStore_PassesTheSuite(t *testing.T) {
	controltest.StoreSuite(t, func(*testing.T) control.Store {
		s := controltest.NewStore()
		s.Now = time.Now
		return s
	})
}

func TestQueue_PassesTheSuite(t *testing.T) {
	controltest.QueueSuite(t, func(*testing.T) (control.Queue, controltest.Receiver) {
		q := controltest.NewQueue(&controltest.Calls{})
		return q, q
	})
}

// The suite would pass a record that it does not know.
func TestEvery_HasEveryRecordThatControlDeclares(t *testing.T) {
	files, err := filepath.Glob("../record*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Kind" {
				declared[f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
			}
		}
	}
	known := map[string]bool{}
	for _, r := range controltest.Every() {
		known[strings.ToLower(string(r.Kind()))] = true
		if _, has := reflect.TypeOf(r).Elem().FieldByName("ExpiresAt"); has != (control.ExpiresAt(r) != nil) {
			t.Errorf("%s has a member ExpiresAt: %v, which control.ExpiresAt does not know", r.Kind(), has)
		}
	}
	if len(declared) < 17 || len(known) != len(declared) {
		t.Fatalf("control declares %v, the suite knows %v", declared, known)
	}
}

func TestStore_IndexesLagAndSweepRemovesWhatIsExpired(t *testing.T) {
	s := controltest.NewStore()
	now := time.Unix(1e9, 0)
	s.Now = func() time.Time { return now }
	r := &control.Task{ID: "a", Cluster: "c", ExpiresAt: now.Add(time.Minute)}
	if err := s.Commit(t.Context(), control.Put(r)); err != nil {
		t.Fatal(err)
	}
	if ids, _, _ := s.TaskIDs(t.Context(), control.TaskQuery{Cluster: "c"}, control.Page{}); len(ids) != 0 {
		t.Fatalf("the index does not lag: %v", ids)
	}
	s.CatchUp()
	now = now.Add(time.Minute)
	if len(s.Tasks()) != 0 {
		t.Fatal("an expired task is still there")
	}
	s.Sweep()
	s.CatchUp()
	if ids, _, _ := s.TaskIDs(t.Context(), control.TaskQuery{Cluster: "c"}, control.Page{}); len(ids) != 0 {
		t.Fatalf("the index shows a removed task: %v", ids)
	}
}
