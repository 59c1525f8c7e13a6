package main

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// prober says which ports of this host something has, by trying to take them
// for a moment; nil where the engine is on another host.
func prober(dockerHost string) func(tcp, udp []int) ([]int, []int) {
	if !strings.HasPrefix(dockerHost, "unix://") {
		return nil
	}
	return func(tcp, udp []int) (takenTCP, takenUDP []int) {
		return taken(tcp, func(at string) (io.Closer, error) { return net.Listen("tcp", at) }),
			taken(udp, func(at string) (io.Closer, error) { return net.ListenPacket("udp", at) })
	}
}

func taken(ports []int, try func(at string) (io.Closer, error)) (all []int) {
	for _, p := range ports {
		held, err := try(":" + strconv.Itoa(p))
		if err == nil {
			_ = held.Close() // nothing was written
		} else if errors.Is(err, syscall.EADDRINUSE) { // not: no right to try
			all = append(all, p)
		}
	}
	return all
}

// freeDisk is what is free on the disk of a folder, in MiB.
func freeDisk(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize >> 20
}
