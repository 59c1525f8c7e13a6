package taskgroup

import (
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	protocol "github.com/godbus/dbus/v5"

	"github.com/longshore-run/longshore/shared/fault"
)

// fakeBus is a systemd that keeps slices.
type fakeBus struct {
	units  map[string]map[string]any // of those that are active
	asked  []string
	job    string // how jobs end
	open   int
	groups string // where their control groups are
}

func newBus(t *testing.T) *fakeBus {
	return &fakeBus{units: map[string]map[string]any{}, job: "done", groups: t.TempDir()}
}

func (b *fakeBus) slices() *sliceUnits {
	return &sliceUnits{prefix: slicePrefix(testInstance), unified: true, root: b.groups, period: DefaultPeriod,
		dial: func(context.Context) (bus, error) { b.open++; return b, nil }}
}

func (b *fakeBus) Close() { b.open-- }

func systemdError(name string) error {
	return protocol.Error{Name: "org.freedesktop.systemd1." + name, Body: []any{name}}
}

func (b *fakeBus) ListUnitsByPatternsContext(_ context.Context, _, patterns []string) (all []dbus.UnitStatus, err error) {
	for name := range b.units {
		if ok, _ := path.Match(patterns[0], name); ok {
			all = append(all, dbus.UnitStatus{Name: name, ActiveState: "active"})
		}
	}
	return all, nil
}

func (b *fakeBus) GetUnitPropertiesContext(_ context.Context, unit string) (map[string]any, error) {
	if b.units[unit] == nil {
		return map[string]any{"ActiveState": "inactive"}, nil // systemd loads whatever it is asked for
	}
	return map[string]any{"ActiveState": "active"}, nil
}

func (b *fakeBus) GetUnitTypePropertiesContext(_ context.Context, unit, _ string) (map[string]any, error) {
	return b.units[unit], nil
}

func (b *fakeBus) StartTransientUnitContext(_ context.Context, name, _ string, properties []dbus.Property, done chan<- string) (int, error) {
	b.asked = append(b.asked, "transient")
	if b.units[name] != nil {
		return 0, systemdError("UnitExists")
	}
	b.units[name] = map[string]any{"ControlGroup": "/" + name}
	done <- b.job
	return 1, b.set(name, properties)
}

func (b *fakeBus) set(name string, properties []dbus.Property) error {
	for _, p := range properties {
		b.units[name][p.Name] = p.Value.Value()
	}
	return os.MkdirAll(filepath.Join(b.groups, name), 0o755)
}

func (b *fakeBus) SetUnitPropertiesContext(_ context.Context, name string, runtime bool, properties ...dbus.Property) error {
	b.asked = append(b.asked, "set")
	return b.set(name, properties)
}

func (b *fakeBus) StartUnitContext(_ context.Context, _, _ string, done chan<- string) (int, error) {
	b.asked = append(b.asked, "start")
	done <- b.job
	return 1, nil
}

func (b *fakeBus) StopUnitContext(_ context.Context, name, _ string, done chan<- string) (int, error) {
	b.asked = append(b.asked, "stop")
	if b.units[name] == nil {
		return 0, systemdError("NoSuchUnit")
	}
	delete(b.units, name)
	done <- b.job
	return 1, nil
}

const testSlice = "longshore-" + testInstance + "-" + testTask + "_2.slice"

func TestSlices_ASliceHasTheTasksSizeAndGoes(t *testing.T) {
	b := newBus(t)
	g := open(b.slices(), quiet())
	for range 2 { // the second one asks for nothing
		if parent, err := g.Ensure(t.Context(), testTask, 2, 512, 256); err != nil || parent != testSlice {
			t.Fatalf("%q, %v", parent, err)
		}
	}
	want := map[string]any{"Description": "Longshore task " + testTask + "_2", "ControlGroup": "/" + testSlice,
		"CPUAccounting": true, "MemoryAccounting": true, "MemoryMax": uint64(256 << 20), "CPUQuotaPerSecUSec": uint64(500_000)}
	if got := b.units[testSlice]; !maps.Equal(got, want) || len(b.asked) != 1 {
		t.Errorf("%v after %s, want %v", got, b.asked, want)
	}
	procs := filepath.Join(b.groups, testSlice, "docker-1.scope", "cgroup.procs")
	if err := os.MkdirAll(filepath.Dir(procs), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(procs, []byte("17\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(t.Context(), testTask, 2); !fault.Is(err, fault.Conflict) || b.units[testSlice] == nil {
		t.Errorf("%v: a slice was stopped, and what ran in it with it", err)
	}
	if err := os.WriteFile(procs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Remove(t.Context(), testTask, 2); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.units) > 0 || b.open != 0 {
		t.Errorf("left: %v, and %d connections", b.units, b.open)
	}
}

func TestSlices_OneThatTheEngineMadeGetsItsLimits(t *testing.T) {
	b := newBus(t)
	b.units[testSlice] = map[string]any{"ControlGroup": "/" + testSlice, "MemoryMax": ^uint64(0)}
	s := b.slices()
	s.period = 10 * time.Millisecond
	if _, err := open(s, quiet()).Ensure(t.Context(), testTask, 2, 2048, 256); err != nil {
		t.Fatal(err)
	}
	got := b.units[testSlice]
	if got["MemoryMax"] != uint64(256<<20) || got["CPUQuotaPerSecUSec"] != uint64(2_000_000) || got["CPUQuotaPeriodUSec"] != uint64(10_000) {
		t.Errorf("%v after %s", got, b.asked)
	}
}

func TestSlices_VersionOneHasItsOwnNameForMemory(t *testing.T) {
	b := newBus(t)
	s := b.slices()
	s.unified = false
	if _, err := open(s, quiet()).Ensure(t.Context(), testTask, 2, 0, 256); err != nil {
		t.Fatal(err)
	}
	got := b.units[testSlice]
	if _, quota := got["CPUQuotaPerSecUSec"]; got["MemoryLimit"] != uint64(256<<20) || quota {
		t.Errorf("%v", got)
	}
}

func TestSlices_ASweepTakesWhatNoTaskHas(t *testing.T) {
	b := newBus(t)
	for _, unit := range []string{testSlice, "longshore-" + testInstance + ".slice", "longshore-" + testInstance + "-" + testTask + "_1.slice", "longshore-other-x_1.slice"} {
		b.units[unit] = map[string]any{"ControlGroup": "/" + unit}
		if err := os.MkdirAll(filepath.Join(b.groups, unit), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(b.slices(), quiet()).Sweep(t.Context(), func(_ string, attempt int) bool { return attempt == 1 }); err != nil {
		t.Fatal(err)
	}
	if len(b.units) != 3 || b.units[testSlice] != nil {
		t.Errorf("left: %v", b.units)
	}
}

func TestSlices_AJobThatFailsIsAnError(t *testing.T) {
	b := newBus(t)
	b.job = "failed"
	if _, err := open(b.slices(), quiet()).Ensure(t.Context(), testTask, 2, 512, 256); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
}
