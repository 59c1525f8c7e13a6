package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// reserveName is the file that only takes room, until the journal needs that.
const reserveName = "reserve"

// reserve is room on the journal's disk, given back when a write finds none: the ends
// of the tasks that are here can be written then.
type reserve struct {
	path string
	size int64 // 0: there is none

	mu    sync.Mutex
	spent string
}

// Option changes how a journal is kept.
type Option func(*reserve)

// WithReserve keeps so many bytes of its disk for when that is full.
func WithReserve(size int64) Option { return func(r *reserve) { r.size = size } }

func newReserve(dir string, options []Option) *reserve {
	r := &reserve{path: filepath.Join(dir, reserveName)}
	for _, o := range options {
		o(r)
	}
	return r
}

// isFull says whether an error means that the disk is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// write does something on the disk. If that is full, the reserve is given back and it
// is done once more. It must be harmless to do twice.
func (r *reserve) write(do func() error) error {
	err := do()
	if !isFull(err) || r.size == 0 {
		return err
	}
	r.mu.Lock()
	r.spent = fmt.Sprintf("the disk of %s is full", filepath.Dir(r.path))
	removed := os.Remove(r.path)
	r.mu.Unlock()
	if removed != nil { // it was spent before
		return err
	}
	return do()
}

// Spent is why the journal lives on its reserve, "" if it does not.
func (j *Journal) Spent() string {
	j.reserve.mu.Lock()
	defer j.reserve.mu.Unlock()
	return j.reserve.spent
}

// Refill sets the reserve aside again. It wants as much room beside it, so that it is
// not what fills the disk; without that it is Unavailable.
func (j *Journal) Refill() error { return j.reserve.refill() }

func (r *reserve) refill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.set(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "set the journal's reserve aside")
	}
	r.spent = ""
	return nil
}

// holds says whether a file takes so much room of its own: a copy of one in which
// nothing was written may be only as long.
func (r *reserve) holds(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Size() == r.size && s.Blocks*512 >= r.size
}

// set makes the file of the reserve, if it is not there in its size.
func (r *reserve) set() error {
	info, err := os.Lstat(r.path)
	if err == nil && r.size > 0 && r.holds(info) {
		return nil
	}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if r.size == 0 {
		return nil
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(r.path), &disk); err != nil {
		return err
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < 2*r.size {
		return fmt.Errorf("%d MiB are free, and twice %d are wanted: %w", free>>20, r.size>>20, syscall.ENOSPC)
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(occupy(f, r.size), f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.path))
	}
	return nil
}

// occupy has a file take room of its own, and not only a length.
func occupy(f *os.File, size int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	part := make([]byte, 1<<20)
	for n := range part { // what is all alike may be kept as next to nothing
		part[n] = byte(n*n>>3 ^ n)
	}
	for at := int64(0); at < size; at += int64(len(part)) {
		if _, err := f.WriteAt(part[:min(int64(len(part)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// inPlace opens the file that is there, without writing it anew, for which there is no
// room; it was read and verified.
func inPlace(dir string, state agent.State) (*Journal, error) {
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	j := &Journal{db: db, sums: map[string]uint32{}}
	err = db.View(func(tx *bbolt.Tx) error {
		if err := json.Unmarshal(tx.Bucket(bucketMeta).Get(keyHead)[4:], &j.head); err != nil {
			return err
		}
		return tx.Bucket(bucketTasks).ForEach(func(k, v []byte) error {
			j.sums[string(k)] = binary.BigEndian.Uint32(v)
			return nil
		})
	})
	if err == nil {
		err = j.commit(agent.Change{Meta: &state.Meta})
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return j, nil
}
