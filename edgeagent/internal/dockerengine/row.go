package dockerengine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// The ports of the host from which rows are taken: those that ECS calls dynamic.
const (
	firstDynamic = 49_153
	lastDynamic  = 65_535
	rowTries     = 200 // of random places, before it is said that there is no room
)

// WithTaken says how to see which ports of the host something has; without it
// the engine's own word at the start is all there is.
func WithTaken(taken func(tcp, udp []int) ([]int, []int)) Option {
	return func(e *Engine) { e.taken = taken }
}

// placeRows gives each of the request's ranges a row of the host's ports that
// are free now. Docker has no word for "so many in a row": it takes them one by
// one, and where one was lost in the meantime the start says so.
func (e *Engine) placeRows(r *createRequest) error {
	if len(r.Rows) == 0 {
		return nil
	}
	ports := maps.Clone(r.Host.PortBindings)
	if ports == nil {
		ports = nat.PortMap{}
	}
	used := map[hostPort]bool{}
	for _, row := range r.Rows {
		first, ok := e.freeRow(row, used)
		if !ok {
			return fault.New(fault.Conflict, "%s: the host has no %d ports in a row that are free for %s", cannotCreate, row.Last-row.First+1, row.Protocol)
		}
		for n := row.First; n <= row.Last; n++ {
			host := first + n - row.First
			used[hostPort{host, row.Protocol}] = true
			ports[portOf(n, row.Protocol)] = []nat.PortBinding{{HostPort: strconv.Itoa(host)}}
		}
	}
	r.Host.PortBindings = ports
	return nil
}

func (e *Engine) freeRow(row taskdef.PortRow, used map[hostPort]bool) (first int, ok bool) {
	size := row.Last - row.First + 1
	for range rowTries {
		first = firstDynamic + rand.IntN(lastDynamic-firstDynamic-size+2)
		var all []int
		for n := range size {
			if !used[hostPort{first + n, row.Protocol}] {
				all = append(all, first+n)
			}
		}
		if len(all) == size && e.free(all, row.Protocol) {
			return first, true
		}
	}
	return 0, false
}

func (e *Engine) free(ports []int, protocol string) bool {
	if e.taken == nil {
		return true
	}
	tcp, udp := ports, []int(nil)
	if protocol == "udp" {
		tcp, udp = nil, ports
	}
	tcp, udp = e.taken(tcp, udp)
	return len(tcp)+len(udp) == 0
}

func portOf(n int, protocol string) nat.Port { return nat.Port(fmt.Sprintf("%d/%s", n, protocol)) }

// rowLabel is how a container remembers its ranges: 7000-7009/udp,80-81/tcp.
func rowLabel(rows []taskdef.PortRow) string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%d-%d/%s", r.First, r.Last, r.Protocol))
	}
	return strings.Join(all, ",")
}

// rowsOf reads such a label; what is no range of ports is none.
func rowsOf(label string) []taskdef.PortRow {
	var rows []taskdef.PortRow
	for part := range strings.SplitSeq(label, ",") {
		ports, protocol, _ := strings.Cut(part, "/")
		first, last, _ := strings.Cut(ports, "-")
		r := taskdef.PortRow{First: portIn(first), Last: portIn(last), Protocol: protocol}
		if r.First > 0 && r.Last >= r.First && isProtocol(protocol) {
			rows = append(rows, r)
		}
	}
	return rows
}

// portIn reads a port; 0 is none.
func portIn(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

func isProtocol(text string) bool { return text == "tcp" || text == "udp" }

// fold makes one binding of each range whose ports are all there, in a row.
func fold(list []task.Binding, rows []taskdef.PortRow) []task.Binding {
	for _, r := range rows {
		at := func(n int) int {
			return slices.IndexFunc(list, func(b task.Binding) bool { return b.ContainerPort == n && b.Protocol == r.Protocol })
		}
		first := at(r.First)
		if first < 0 {
			continue
		}
		head, whole := list[first], true
		for n := r.First; n <= r.Last && whole; n++ {
			i := at(n)
			whole = i >= 0 && list[i].HostPort == head.HostPort+n-r.First
		}
		if !whole {
			continue
		}
		list = slices.DeleteFunc(list, func(b task.Binding) bool {
			return b.Protocol == r.Protocol && b.ContainerPort >= r.First && b.ContainerPort <= r.Last
		})
		list = append(list, task.Binding{
			BindIP: head.BindIP, Protocol: r.Protocol, ContainerPortRange: fmt.Sprintf("%d-%d", r.First, r.Last),
			HostPortRange: fmt.Sprintf("%d-%d", head.HostPort, head.HostPort+r.Last-r.First),
		})
	}
	return list
}

// lostRow says whether one of the ports that could not be had is of a row: then
// another row will do, for a container that was never started.
func lostRow(c container.InspectResponse, ports []hostPort) bool {
	for _, r := range rowsOf(c.Config.Labels[labelRows]) {
		for n := r.First; n <= r.Last; n++ {
			for _, b := range c.HostConfig.PortBindings[portOf(n, r.Protocol)] {
				host, _ := strconv.Atoi(b.HostPort)
				if slices.Contains(ports, hostPort{host, r.Protocol}) {
					return true
				}
			}
		}
	}
	return false
}
