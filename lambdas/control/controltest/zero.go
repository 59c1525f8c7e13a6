package controltest

import "github.com/longshore-run/longshore/lambdas/control"

// zero empties a record before it is filled in again.
func zero(r control.Record) {
	switch r := r.(type) {
	case *control.Task:
		*r = control.Task{}
	case *control.Instance:
		*r = control.Instance{}
	case *control.Ledger:
		*r = control.Ledger{}
	case *control.Lease:
		*r = control.Lease{}
	case *control.Probe:
		*r = control.Probe{}
	case *control.Guard:
		*r = control.Guard{}
	case *control.Brake:
		*r = control.Brake{}
	case *control.Cluster:
		*r = control.Cluster{}
	case *control.QueueState:
		*r = control.QueueState{}
	case *control.Family:
		*r = control.Family{}
	case *control.Definition:
		*r = control.Definition{}
	case *control.Token:
		*r = control.Token{}
	case *control.Live:
		*r = control.Live{}
	default:
		panic("controltest: unknown record")
	}
}

// blank leaves a record that does not exist with nothing but its key.
func blank(r control.Record) {
	switch r := r.(type) {
	case *control.Task:
		*r = control.Task{ID: r.ID}
	case *control.Instance:
		*r = control.Instance{ID: r.ID}
	case *control.Ledger:
		*r = control.Ledger{ID: r.ID}
	case *control.Lease:
		*r = control.Lease{ID: r.ID}
	case *control.Probe:
		*r = control.Probe{ID: r.ID}
	case *control.Guard:
		*r = control.Guard{}
	case *control.Brake:
		*r = control.Brake{Zone: r.Zone}
	case *control.Cluster:
		*r = control.Cluster{Name: r.Name}
	case *control.QueueState:
		*r = control.QueueState{Cluster: r.Cluster}
	case *control.Family:
		*r = control.Family{Name: r.Name}
	case *control.Definition:
		*r = control.Definition{Family: r.Family, Number: r.Number}
	case *control.Token:
		*r = control.Token{Scope: r.Scope, Token: r.Token}
	case *control.Live:
		*r = control.Live{Cluster: r.Cluster, Service: r.Service}
	default:
		panic("controltest: unknown record")
	}
}
