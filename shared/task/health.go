package task

// Health is a healthStatus, of a container or of a task. Unlike a status it goes
// up and down, so it is taken from the newest snapshot and never merged. Empty is
// that of what has no health check; ECS shows that as UNKNOWN too.
type Health string

const (
	HealthUnknown Health = "UNKNOWN" // checked, and no outcome yet
	Healthy       Health = "HEALTHY"
	Unhealthy     Health = "UNHEALTHY"
)

// Known says whether h is one at all; none is.
func (h Health) Known() bool {
	return h == "" || h == HealthUnknown || h == Healthy || h == Unhealthy
}

// RollUp is a task's health, of that of its essential containers: those without
// a health check do not count, one that is unhealthy makes the task so, and it
// is healthy once all are.
func RollUp(essential ...Health) Health {
	var all Health
	for _, h := range essential {
		switch {
		case h == "":
		case h == Unhealthy || all == Unhealthy:
			all = Unhealthy
		case h == HealthUnknown || all == HealthUnknown:
			all = HealthUnknown
		default:
			all = Healthy
		}
	}
	return all
}

// Renew is known with what a newer snapshot tells of it that comes and goes: how
// well containers are, and the ports of one that was started again.
func Renew(known, newer []Container) []Container {
	out := append([]Container(nil), known...)
	for i := range out {
		for _, r := range newer {
			if r.Name != out[i].Name {
				continue
			}
			if r.Health != "" {
				out[i].Health = r.Health
			}
			if len(r.Bindings) > 0 {
				out[i].Bindings = r.Bindings
			}
		}
	}
	return out
}
