package endpoint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// An id is what a container shows to be known. It is not stored anywhere: it can be
// made again from the key as long as that is kept, and so outlives the agent as the
// container's environment does.
//
//	task-attempt-container-proof
//
// The container stands in it by a hash of its name. The proof is over all of them and
// what the id is for, so that neither can be exchanged.
const (
	metadataIDs    = "longshore task metadata v4"
	credentialsIDs = "longshore task credentials v2"
)

const (
	keyBytes   = 32
	proofBytes = 24
	mostID     = 160 // characters
)

// Key reads the key from a file, which it makes if it is not there.
func Key(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	switch {
	case err == nil && len(key) == keyBytes:
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("%s has %d bytes, want %d; without it, running containers lose their credentials", file, len(key), keyBytes)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	fresh := file + ".new"
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return key, os.Rename(fresh, file)
}

func (s *Server) id(purpose string, id agent.ContainerID) string {
	name := nameHash(id.Container)
	return fmt.Sprintf("%s-%d-%s-%s", id.Task, id.Attempt, name, hex.EncodeToString(s.proof(purpose, id.Task, id.Attempt, name)))
}

// claim is who an id says that its bearer is.
type claim struct {
	task    string
	attempt int
	name    string // hash of the container's
}

// read reads an id; false for one that was not made with our key for the purpose.
func (s *Server) read(purpose, id string) (claim, bool) {
	if len(id) > mostID {
		return claim{}, false
	}
	parts := strings.Split(id, "-")
	if len(parts) < 4 {
		return claim{}, false
	}
	n := len(parts)
	c := claim{task: strings.Join(parts[:n-3], "-"), name: parts[n-2]}
	attempt, err := strconv.Atoi(parts[n-3])
	proof, bad := hex.DecodeString(parts[n-1])
	if err != nil || bad != nil || strconv.Itoa(attempt) != parts[n-3] {
		return claim{}, false
	}
	c.attempt = attempt
	return c, hmac.Equal(proof, s.proof(purpose, c.task, c.attempt, c.name))
}

func (s *Server) proof(purpose, task string, attempt int, name string) []byte {
	mac := hmac.New(sha256.New, s.Key)
	for _, part := range []string{purpose, task, strconv.Itoa(attempt), name} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)[:proofBytes]
}

func nameHash(container string) string {
	sum := sha256.Sum256([]byte(container))
	return hex.EncodeToString(sum[:8])
}
