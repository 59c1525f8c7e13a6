package taskgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	protocol "github.com/godbus/dbus/v5"
)

// sliceUnits are groups as units of systemd, for engines with the driver systemd:
// longshore-<instance>-<name>.slice. The agent needs no right to write control
// groups for it: systemd does.
type sliceUnits struct {
	prefix  string
	unified bool   // version 2
	root    string // to look into, never to write
	period  time.Duration
	dial    func(context.Context) (bus, error)
}

// bus is what is asked of systemd; *dbus.Conn is one.
type bus interface {
	ListUnitsByPatternsContext(ctx context.Context, states, patterns []string) ([]dbus.UnitStatus, error)
	GetUnitPropertiesContext(ctx context.Context, unit string) (map[string]any, error)
	GetUnitTypePropertiesContext(ctx context.Context, unit, unitType string) (map[string]any, error)
	StartTransientUnitContext(ctx context.Context, name, mode string, properties []dbus.Property, done chan<- string) (int, error)
	SetUnitPropertiesContext(ctx context.Context, name string, runtime bool, properties ...dbus.Property) error
	StartUnitContext(ctx context.Context, name, mode string, done chan<- string) (int, error)
	StopUnitContext(ctx context.Context, name, mode string, done chan<- string) (int, error)
	Close()
}

// dial connects anew for each use: a connection that is kept would outlive the
// systemd that it was made to.
func dial(ctx context.Context) (bus, error) {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("systemd is not reached over D-Bus: %w", err)
	}
	return conn, nil
}

const sliceEnd = ".slice"

// slicePrefix is what the names of an instance's slices begin with. A hyphen ends
// the name of a parent slice: they are all below longshore-<instance>.slice.
func slicePrefix(instance string) string { return ours + "-" + plain(instance) + "-" }

func (s *sliceUnits) parent(name string) string { return s.prefix + name + sliceEnd }

func (s *sliceUnits) usable(ctx context.Context) error {
	if _, err := os.Stat(s.hierarchy()); err != nil {
		return fmt.Errorf("control groups of systemd are not seen: %w", err)
	}
	_, err := s.list(ctx)
	return err
}

// hierarchy is where systemd's own groups are seen.
func (s *sliceUnits) hierarchy() string {
	if s.unified {
		return s.root
	}
	return filepath.Join(s.root, "systemd")
}

func (s *sliceUnits) memoryProperty() string {
	if s.unified {
		return "MemoryMax"
	}
	return "MemoryLimit"
}

func (s *sliceUnits) properties(l limits) []dbus.Property {
	p := []dbus.Property{property("CPUAccounting", true), property("MemoryAccounting", true)}
	if l.memory > 0 {
		p = append(p, property(s.memoryProperty(), uint64(l.memory)))
	}
	if l.cpu > 0 {
		if s.period != DefaultPeriod { // systemd before 242 knows no other, and would refuse it all
			p = append(p, property("CPUQuotaPeriodUSec", uint64(s.period.Microseconds())))
		}
		p = append(p, property("CPUQuotaPerSecUSec", uint64(l.quota(time.Second).Microseconds())))
	}
	return p
}

func property(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: protocol.MakeVariant(value)}
}

func (s *sliceUnits) ensure(ctx context.Context, name string, l limits) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	unit, want := s.parent(name), s.properties(l)
	if has(ctx, conn, unit, want) {
		return nil
	}
	transient := append([]dbus.Property{dbus.PropDescription("Longshore task " + name)}, want...)
	err = await(ctx, func(done chan<- string) (int, error) {
		return conn.StartTransientUnitContext(ctx, unit, "replace", transient, done)
	})
	if !isError(err, "UnitExists") {
		return err
	}
	// It is there with other limits, or none: an engine's own start makes it so.
	if err := conn.SetUnitPropertiesContext(ctx, unit, true, want...); err != nil {
		return err
	}
	return await(ctx, func(done chan<- string) (int, error) { return conn.StartUnitContext(ctx, unit, "replace", done) })
}

// has says whether a slice is there as it is to be. What cannot be read is not.
func has(ctx context.Context, conn bus, unit string, want []dbus.Property) bool {
	state, err := conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil || state["ActiveState"] != "active" {
		return false
	}
	now, err := conn.GetUnitTypePropertiesContext(ctx, unit, "Slice")
	if err != nil {
		return false
	}
	for _, p := range want {
		if now[p.Name] != p.Value.Value() {
			return false
		}
	}
	return true
}

// remove stops a slice, which would end what is in it: so that is looked at first.
func (s *sliceUnits) remove(ctx context.Context, name string) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	unit := s.parent(name)
	state, err := conn.GetUnitPropertiesContext(ctx, unit)
	if isError(err, "NoSuchUnit") || err == nil && state["ActiveState"] != "active" {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := conn.GetUnitTypePropertiesContext(ctx, unit, "Slice")
	if err != nil {
		return err
	}
	path, ok := now["ControlGroup"].(string)
	if !ok {
		return fmt.Errorf("systemd does not say where the control group of %s is", unit)
	}
	if path != "" && path != "/" {
		full, err := inhabited(filepath.Join(s.hierarchy(), path))
		if err != nil {
			return err
		}
		if full {
			return fmt.Errorf("%s: %w", unit, errBusy)
		}
	}
	err = await(ctx, func(done chan<- string) (int, error) { return conn.StopUnitContext(ctx, unit, "replace", done) })
	if isError(err, "NoSuchUnit") {
		return nil
	}
	return err
}

func (s *sliceUnits) list(ctx context.Context) (names []string, err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	units, err := conn.ListUnitsByPatternsContext(ctx, []string{}, []string{s.prefix + "*" + sliceEnd})
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		if u.ActiveState == "active" {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(u.Name, s.prefix), sliceEnd))
		}
	}
	return names, nil
}

// await asks for a job and waits for its end.
func await(ctx context.Context, ask func(done chan<- string) (int, error)) error {
	done := make(chan string, 1)
	if _, err := ask(done); err != nil {
		return err
	}
	select {
	case how := <-done:
		if how != "done" {
			return fmt.Errorf("the job of systemd ended as %q", how)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isError says whether systemd answered with one of its errors.
func isError(err error, name string) bool {
	e, ok := errors.AsType[protocol.Error](err)
	return ok && e.Name == "org.freedesktop.systemd1."+name
}
