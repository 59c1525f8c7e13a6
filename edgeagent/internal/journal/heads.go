package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	"github.com/longshore-run/longshore/shared/fault"
)

// Where bbolt keeps the head of a transaction in each of the file's first two
// pages: behind the page's own sixteen bytes, up to its checksum.
const (
	headAt     = 16
	headTxID   = 48 // of the head
	headLength = 56
)

// checkHeads asks that both of bbolt's heads are whole and follow each other.
// bbolt itself is content with one: where the newer is damaged, it shows the
// transaction before it, and what was acknowledged since is forgotten without a
// word. No crash leaves a half of one behind, since it lies within one sector.
func checkHeads(path string, pageSize int) error {
	f, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "read journal")
	}
	defer f.Close()
	var ids [2]uint64
	for n := range ids {
		head := make([]byte, headLength+8)
		if _, err := f.ReadAt(head, int64(n*pageSize+headAt)); err != nil {
			return fmt.Errorf("head %d: %w", n, err)
		}
		sum := fnv.New64a()
		_, _ = sum.Write(head[:headLength]) // never fails
		if sum.Sum64() != binary.NativeEndian.Uint64(head[headLength:]) {
			return fmt.Errorf("head %d: its checksum is wrong", n)
		}
		ids[n] = binary.NativeEndian.Uint64(head[headTxID:])
	}
	if ids[0]+1 != ids[1] && ids[1]+1 != ids[0] {
		return errors.New("its heads are not of one life")
	}
	return nil
}
