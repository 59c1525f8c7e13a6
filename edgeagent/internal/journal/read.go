package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// read reads a journal file without changing it. Errors: NotFound, Unsupported
// (a newer format), Unavailable (the file cannot be opened); any other means
// that its content is damaged.
func read(path string) (state agent.State, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return state, fault.New(fault.NotFound, "there is no journal")
	case err != nil:
		return state, fault.Wrap(fault.Unavailable, err, "read journal")
	case !info.Mode().IsRegular():
		return state, fault.New(fault.Unavailable, "read journal: %s is not a file", path)
	case info.Size() == 0:
		return state, errors.New("the file is empty")
	}
	if f, err := os.Open(path); err != nil { // so that bbolt's errors are about the content
		return state, fault.Wrap(fault.Unavailable, err, "read journal")
	} else if err := f.Close(); err != nil {
		return state, fault.Wrap(fault.Unavailable, err, "read journal")
	}
	// A damaged file makes bbolt panic, or its memory map fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return state, fmt.Errorf("the file is damaged: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkHeads(path, db.Info().PageSize); err != nil {
		return state, err
	}
	tx, err := db.Begin(false)
	if err != nil {
		return state, fmt.Errorf("the file is damaged: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	return load(tx)
}

// maxFormat is how many digits the number of a format may have.
const maxFormat = 9

// load reads a whole state and verifies it.
func load(tx *bbolt.Tx) (agent.State, error) {
	state := agent.State{Tasks: map[string]agent.Record{}}
	meta, tasks := tx.Bucket(bucketMeta), tx.Bucket(bucketTasks)
	if meta == nil || tasks == nil {
		return state, errors.New("a bucket is missing")
	}
	// A damaged length makes a key or value as long as all memory behind it: nothing
	// of it is read before it is known to lie within the file.
	within := func(b []byte) bool { return int64(len(b)) < tx.Size() }
	written := meta.Get(keyFormat)
	if len(written) > maxFormat {
		return state, errors.New("its format is not a number")
	}
	format, err := strconv.Atoi(string(written))
	if err != nil {
		return state, errors.New("its format is not a number")
	}
	if format > Format {
		return state, fault.New(fault.Unsupported,
			"the journal is of format %d, and this agent reads up to %d: a newer release wrote it; install that release again, or move the file away (the agent then starts a new incarnation and adopts what runs)", format, Format)
	}
	var h head
	if !within(meta.Get(keyHead)) {
		return state, errors.New("head: it is longer than the file")
	}
	if _, err := unpack(meta.Get(keyHead), &h); err != nil {
		return state, fmt.Errorf("head: %w", err)
	}
	if images := meta.Get(keyImages); images != nil {
		if !within(images) {
			return state, errors.New("images: they are longer than the file")
		}
		if _, err := unpack(images, &state.Images); err != nil {
			return state, fmt.Errorf("images: %w", err)
		}
	}
	var sum uint32
	err = tasks.ForEach(func(k, v []byte) error {
		if !within(k) || !within(v) {
			return errors.New("a task is longer than the file")
		}
		var r agent.Record
		s, err := unpack(v, &r)
		if err != nil {
			return fmt.Errorf("task %s: %w", k, err)
		}
		if r.ID() != string(k) {
			return fmt.Errorf("task %s: its record is of task %s", k, r.ID())
		}
		sum += s
		state.Tasks[r.ID()] = r
		return nil
	})
	if err != nil {
		return state, err
	}
	if len(state.Tasks) != h.Tasks || sum != h.Sum {
		return state, fmt.Errorf("it holds %d tasks, and says it has %d", len(state.Tasks), h.Tasks)
	}
	if h.Meta.Incarnation == "" {
		return state, errors.New("it names no incarnation")
	}
	state.Meta = h.Meta
	return state, nil
}
