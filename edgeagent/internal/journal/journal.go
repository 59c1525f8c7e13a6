// Package journal keeps an agent's state on disk, in one bbolt file that only
// root can read. It survives the death of the process and of the machine at any
// point. It decides nothing about tasks. Only the agent's main imports it.
//
// The file is written anew each time it is opened, from what could be read and
// verified: so it never grows for good, and damage that bbolt itself would not
// notice is not carried along. What cannot be verified, or belongs to another
// machine, is moved aside, never deleted.
package journal

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// Format is the version of the file's layout that this code writes and reads.
const Format = 1

const (
	fileName = "journal.db"
	lockName = "journal.lock"
	newName  = "journal.db.new"
)

// Owner is whose journal it is.
type Owner struct {
	Hardware string // "" if it cannot be known
	Identity string
}

// Opening says how a journal was opened, for the log.
type Opening struct {
	Fresh   bool   // it is a new one, with a new incarnation
	MovedTo string // where the old file is, if there was one that is not used
	Why     string // it is not used
	// Unreserved is why nothing could be kept for a full disk, though it is not full.
	Unreserved string
}

// Journal is an open journal.
type Journal struct {
	db   *bbolt.DB
	lock *os.File
	head head
	sums map[string]uint32

	reserve *reserve
}

// head is what the file says of itself; with it a journal that lost some of its
// tasks is noticed.
type head struct {
	Meta  agent.Meta `json:"meta"`
	Tasks int        `json:"tasks"`
	Sum   uint32     `json:"sum"` // of the tasks' checksums
}

// Open opens or makes the journal in dir. A file that cannot be read or belongs
// to another machine or identity is moved aside, and the new one starts a new
// incarnation. Errors: Conflict (another agent has it), Unsupported (a newer
// release wrote it; it is left untouched), Unavailable (the disk).
//
// A file on a full disk is opened as it is, if there is no room to write it anew even
// without the reserve.
func Open(dir string, owner Owner, newID func() string, now time.Time, options ...Option) (*Journal, Opening, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Opening{}, fault.Wrap(fault.Unavailable, err, "open journal")
	}
	spare := newReserve(dir, options)
	var lock *os.File
	err := spare.write(func() (err error) {
		lock, err = takeLock(filepath.Join(dir, lockName))
		return err
	})
	if err != nil {
		return nil, Opening{}, err
	}
	j, how, err := open(dir, spare, owner, newID, now)
	if err != nil {
		return nil, Opening{}, errors.Join(err, lock.Close())
	}
	j.lock, j.reserve = lock, spare
	switch err := spare.refill(); {
	case isFull(err):
		spare.spent = cmp.Or(spare.spent, err.Error())
	case err != nil:
		how.Unreserved = err.Error()
	}
	return j, how, nil
}

func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "open journal")
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fault.New(fault.Conflict, "another agent is running with this data folder (it holds %s)", path)
		}
		return nil, fault.Wrap(fault.Unavailable, err, "lock %s", path)
	}
	return lock, nil
}

func open(dir string, spare *reserve, owner Owner, newID func() string, now time.Time) (*Journal, Opening, error) {
	path := filepath.Join(dir, fileName)
	state, err := read(path)
	how := Opening{}
	switch {
	case fault.Is(err, fault.Unsupported), fault.Is(err, fault.Unavailable):
		return nil, how, err
	case fault.Is(err, fault.NotFound):
		how.Fresh = true
	case err != nil:
		how = Opening{Fresh: true, Why: err.Error(), MovedTo: fmt.Sprintf("%s.corrupt-%s", path, now.UTC().Format("20060102T150405.000Z"))}
	case foreign(state.Meta, owner) != "":
		how = Opening{Fresh: true, Why: foreign(state.Meta, owner), MovedTo: fmt.Sprintf("%s.foreign-%s", path, now.UTC().Format("20060102T150405.000Z"))}
	}
	if how.MovedTo != "" {
		if err := os.Rename(path, how.MovedTo); err != nil {
			return nil, how, fault.Wrap(fault.Unavailable, err, "move the journal aside")
		}
	}
	if how.Fresh {
		state = agent.State{Meta: agent.Meta{Incarnation: newID()}}
	}
	state.Meta.Identity = owner.Identity
	if owner.Hardware != "" {
		state.Meta.Hardware = owner.Hardware
	}
	var j *Journal
	err = spare.write(func() (err error) {
		j, err = rewrite(dir, state)
		return err
	})
	if isFull(err) && !how.Fresh {
		if there, second := inPlace(dir, state); second == nil {
			return there, how, nil
		}
	}
	return j, how, err
}

// foreign says why a journal is not the owner's, or "".
func foreign(m agent.Meta, o Owner) string {
	switch {
	case m.Identity != o.Identity:
		return fmt.Sprintf("it belongs to identity %q", m.Identity)
	case m.Hardware != "" && o.Hardware != "" && m.Hardware != o.Hardware:
		return "it was made on other hardware"
	}
	return ""
}

// rewrite puts state into a file of its own and that in the journal's place.
func rewrite(dir string, state agent.State) (*Journal, error) {
	path, fresh := filepath.Join(dir, fileName), filepath.Join(dir, newName)
	if err := ignoreMissing(os.Remove(fresh)); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "open journal")
	}
	db, err := bbolt.Open(fresh, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "open journal")
	}
	j := &Journal{db: db, sums: map[string]uint32{}}
	all := agent.Change{Meta: &state.Meta, Images: state.Images}
	for _, r := range state.Tasks {
		all.Put = append(all.Put, r)
	}
	err = j.commit(all)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		// What was written of it takes room that is wanted now.
		return nil, fault.Wrap(fault.Unavailable, errors.Join(err, db.Close(), ignoreMissing(os.Remove(fresh))), "write journal")
	}
	return j, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load reads everything.
func (j *Journal) Load() (agent.State, error) {
	state := agent.State{}
	err := j.db.View(func(tx *bbolt.Tx) error {
		var err error
		state, err = load(tx)
		return err
	})
	return state, err
}

// Commit writes a change in one transaction.
func (j *Journal) Commit(c agent.Change) error {
	return j.reserve.write(func() error { return j.commit(c) })
}

func (j *Journal) commit(c agent.Change) error {
	h, sums := j.head, map[string]uint32{}
	if c.Meta != nil {
		h.Meta = *c.Meta
	}
	err := j.db.Update(func(tx *bbolt.Tx) error {
		meta, tasks, err := buckets(tx)
		if err != nil {
			return err
		}
		for _, id := range c.Drop {
			if err := tasks.Delete([]byte(id)); err != nil {
				return err
			}
			if old, ok := j.sums[id]; ok {
				h.Tasks, h.Sum = h.Tasks-1, h.Sum-old
			}
		}
		for _, r := range c.Put {
			id := r.ID()
			value, sum, err := pack(r)
			if err != nil {
				return err
			}
			if err := tasks.Put([]byte(id), value); err != nil {
				return err
			}
			if old, ok := j.sums[id]; ok {
				h.Tasks, h.Sum = h.Tasks-1, h.Sum-old
			}
			h.Tasks, h.Sum = h.Tasks+1, h.Sum+sum
			sums[id] = sum
		}
		if c.Images != nil {
			value, _, err := pack(c.Images)
			if err != nil {
				return err
			}
			if err := meta.Put(keyImages, value); err != nil {
				return err
			}
		}
		value, _, err := pack(h)
		if err != nil {
			return err
		}
		return meta.Put(keyHead, value)
	})
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "write journal")
	}
	j.head = h
	for _, id := range c.Drop {
		delete(j.sums, id)
	}
	maps.Copy(j.sums, sums)
	return nil
}

// Close lets another agent open it.
func (j *Journal) Close() error { return errors.Join(j.db.Close(), j.lock.Close()) }

var (
	bucketMeta  = []byte("meta")
	bucketTasks = []byte("tasks")
	keyFormat   = []byte("format")
	keyHead     = []byte("head")
	keyImages   = []byte("images")
)

func buckets(tx *bbolt.Tx) (meta, tasks *bbolt.Bucket, err error) {
	if meta, err = tx.CreateBucketIfNotExists(bucketMeta); err != nil {
		return nil, nil, err
	}
	if meta.Get(keyFormat) == nil {
		if err := meta.Put(keyFormat, fmt.Append(nil, Format)); err != nil {
			return nil, nil, err
		}
	}
	tasks, err = tx.CreateBucketIfNotExists(bucketTasks)
	return meta, tasks, err
}

// pack is a value with its checksum in front.
func pack(v any) ([]byte, uint32, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, 0, err
	}
	sum := crc32.ChecksumIEEE(body)
	return append(binary.BigEndian.AppendUint32(nil, sum), body...), sum, nil
}

func unpack(value []byte, into any) (uint32, error) {
	if len(value) < 4 {
		return 0, errors.New("a value is too short")
	}
	sum, body := binary.BigEndian.Uint32(value), value[4:]
	if crc32.ChecksumIEEE(body) != sum {
		return 0, errors.New("a checksum is wrong")
	}
	return sum, json.Unmarshal(body, into)
}
