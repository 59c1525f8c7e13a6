package control

// Blank empties a record but for its key: what Load leaves of one that does not
// exist. Stores call it before they fill a record.
func Blank(r Record) {
	switch r := r.(type) {
	case *Task:
		*r = Task{ID: r.ID}
	case *Instance:
		*r = Instance{ID: r.ID}
	case *Ledger:
		*r = Ledger{ID: r.ID}
	case *Lease:
		*r = Lease{ID: r.ID}
	case *Probe:
		*r = Probe{ID: r.ID}
	case *Guard:
		*r = Guard{}
	case *Brake:
		*r = Brake{Zone: r.Zone}
	case *Cluster:
		*r = Cluster{Name: r.Name}
	case *Settings:
		*r = Settings{Principal: r.Principal}
	case *QueueState:
		*r = QueueState{Cluster: r.Cluster}
	case *Family:
		*r = Family{Name: r.Name}
	case *Definition:
		*r = Definition{Family: r.Family, Number: r.Number}
	case *Token:
		*r = Token{Scope: r.Scope, Token: r.Token}
	case *Live:
		*r = Live{Cluster: r.Cluster, Service: r.Service}
	case *Service:
		*r = Service{Cluster: r.Cluster, Name: r.Name}
	case *ServiceEvents:
		*r = ServiceEvents{Cluster: r.Cluster, Service: r.Service}
	case *ServiceRevision:
		*r = ServiceRevision{Cluster: r.Cluster, Service: r.Service, ID: r.ID}
	case *ServiceDeployment:
		*r = ServiceDeployment{Cluster: r.Cluster, Service: r.Service, ID: r.ID}
	case *Schedule:
		*r = Schedule{Name: r.Name}
	default:
		panic("control: unknown record")
	}
}
