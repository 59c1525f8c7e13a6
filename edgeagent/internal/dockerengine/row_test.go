package dockerengine

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func TestPlaceRows_GivesEachRangeFreePortsOfTheHostInARow(t *testing.T) {
	// The host has nothing free but every tenth hundred.
	taken := func(ports []int) (all []int) {
		for _, p := range ports {
			if p/100%10 != 0 {
				all = append(all, p)
			}
		}
		return all
	}
	e := newStub(t).engine(t, patient(), WithTaken(func(tcp, udp []int) ([]int, []int) { return taken(tcp), taken(udp) }))
	rows := []taskdef.PortRow{{First: 7000, Last: 7019, Protocol: "tcp"}, {First: 7000, Last: 7019, Protocol: "udp"}, {First: 10, Last: 11, Protocol: "tcp"}}
	for range 20 {
		kept := nat.PortMap{"80/tcp": {{HostPort: "0"}}}
		r := createRequest{Host: &container.HostConfig{PortBindings: kept}, Rows: rows}
		if err := e.placeRows(&r); err != nil {
			t.Fatal(err)
		}
		seen := map[hostPort]bool{}
		for _, row := range rows {
			first := 0
			for n := row.First; n <= row.Last; n++ {
				host, _ := strconv.Atoi(r.Host.PortBindings[portOf(n, row.Protocol)][0].HostPort)
				if n == row.First {
					first = host
				}
				p := hostPort{host, row.Protocol}
				if host != first+n-row.First || host < firstDynamic || host > lastDynamic || len(taken([]int{host})) > 0 || seen[p] {
					t.Fatalf("%v: %d is on %d: %v", row, n, host, r.Host.PortBindings)
				}
				seen[p] = true
			}
		}
		if len(r.Host.PortBindings) != 43 || len(kept) != 1 {
			t.Fatalf("%d bindings, and the request it was made of has %d", len(r.Host.PortBindings), len(kept))
		}
	}
}

func TestPlaceRows_AHostWithoutRoomIsAConflict(t *testing.T) {
	e := newStub(t).engine(t, patient(), WithTaken(func(tcp, udp []int) ([]int, []int) { return tcp, udp }))
	r := createRequest{Host: &container.HostConfig{}, Rows: []taskdef.PortRow{{First: 1, Last: 2, Protocol: "udp"}}}
	if err := e.placeRows(&r); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

// A row that was lost to a stranger between create and start cannot be moved:
// the container, which never ran, is removed and made again. One that insists on
// a port of its own keeps it.
func TestStart_ALostRowIsAContainerToMakeAgain(t *testing.T) {
	for port, again := range map[string]bool{"50001": true, "8080": false} {
		c := aContainer(container.State{Status: "created", StartedAt: noTime}, func(c *container.InspectResponse) {
			c.Config.Labels[labelRows] = "7000-7002/tcp"
			c.HostConfig.PortBindings = nat.PortMap{"80/tcp": {{HostPort: "8080"}},
				"7000/tcp": {{HostPort: "50000"}}, "7001/tcp": {{HostPort: "50001"}}, "7002/tcp": {{HostPort: "50002"}}}
		})
		s := holding(t, c)
		s.on("POST /containers/c1/start", say(http.StatusInternalServerError, fmt.Sprintf(bindTaken, port)))
		s.on("DELETE /containers/c1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		err := s.engine(t, patient()).Start(t.Context(), anID)
		removed := s.count("DELETE /containers/c1") == 1
		if again != removed || again != fault.Is(err, fault.NotFound) || again == fault.Is(err, fault.Conflict) {
			t.Errorf("port %s: removed %v, %v", port, removed, err)
		}
	}
}

func TestFold_ShowsARangeAsOne(t *testing.T) {
	one := func(n, host int, protocol string) task.Binding {
		return task.Binding{BindIP: "0.0.0.0", ContainerPort: n, HostPort: host, Protocol: protocol}
	}
	list := []task.Binding{one(80, 8080, "tcp"), one(7000, 50000, "udp"), one(7001, 50001, "udp"), one(7000, 3, "tcp"), one(9000, 5, "tcp"), one(9001, 7, "tcp")}
	rows := rowsOf(rowLabel([]taskdef.PortRow{{First: 7000, Last: 7001, Protocol: "udp"}, {First: 9000, Last: 9001, Protocol: "tcp"}, {First: 1, Last: 2, Protocol: "tcp"}}))
	if len(rows) != 3 || rows[0] != (taskdef.PortRow{First: 7000, Last: 7001, Protocol: "udp"}) {
		t.Fatalf("read back %v", rows)
	}
	want := []task.Binding{one(80, 8080, "tcp"), one(7000, 3, "tcp"), one(9000, 5, "tcp"), one(9001, 7, "tcp"),
		{BindIP: "0.0.0.0", ContainerPortRange: "7000-7001", HostPortRange: "50000-50001", Protocol: "udp"}}
	if got := fold(slices.Clone(list), rows); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := fold(slices.Clone(list), rowsOf("")); !reflect.DeepEqual(got, list) {
		t.Errorf("without ranges: %+v", got)
	}
}
