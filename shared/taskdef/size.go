package taskdef

import (
	"math"
	"strconv"
	"strings"
)

// The bounds of a task's own CPU and memory.
const (
	minTaskCPU  = 128     // CPU units
	maxTaskCPU  = 196_608 // CPU units, 192 cores
	minMemory   = 6       // MiB, what Docker itself needs for a container
	maxMemory   = 1 << 30 // MiB
	unitsPerCPU = 1024
	mibPerGiB   = 1024
)

// parseCPU reads a task's cpu: "1024" or "1 vCPU".
func parseCPU(s string) (int, bool) { return parseAmount(s, "vcpu", unitsPerCPU) }

// parseMemory reads a task's memory: "2048" or "2 GB".
func parseMemory(s string) (int, bool) { return parseAmount(s, "gb", mibPerGiB) }

func parseAmount(s, unit string, scale int) (int, bool) {
	s = strings.TrimSpace(s)
	if number, ok := strings.CutSuffix(strings.ToLower(s), unit); ok {
		number = strings.TrimSpace(number)
		if number == "" || strings.Trim(number, "0123456789.") != "" {
			return 0, false
		}
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || f*float64(scale) > math.MaxInt32 {
			return 0, false
		}
		return int(math.Round(f * float64(scale))), true
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

// plain is an amount as ECS shows it again: "1 vCPU" becomes "1024". What cannot be read stays.
func plain(s string, parse func(string) (int, bool)) string {
	n, ok := parse(s)
	if s == "" || !ok {
		return s
	}
	return strconv.Itoa(n)
}
