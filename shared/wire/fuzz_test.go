package wire_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// maxFault bounds what is said about a message that can not be read: it is logged,
// and put aside with the message.
const maxFault = 1024

// FuzzDecode: whatever comes is refused by name or read, never more than that;
// what was read can be written, and is the same when it is read again.
func FuzzDecode(f *testing.F) {
	for _, m := range shipped() {
		b, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := wire.Decode(body)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error of kind %s: %v", fault.Of(err), err)
			}
			if n := len(err.Error()); n > maxFault {
				t.Fatalf("the error has %d bytes", n)
			}
			if _, ok := m.(*wire.Unreadable); m != nil && !ok {
				t.Fatalf("an error and a %T", m)
			}
			return
		}
		once, err := wire.Encode(m)
		if err != nil {
			if len(body) > wire.MaxBytes/8 { // escapes may have made it too long
				return
			}
			t.Fatalf("read and not writable: %v\n%s", err, body)
		}
		again, err := wire.Decode(once)
		if err != nil {
			t.Fatalf("written and not readable: %v\n%s", err, once)
		}
		twice, err := wire.Encode(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%v\n%s\n%s", err, once, twice)
		}
	})
}

func TestDecode_WhatIsSaidOfAMessageIsBounded(t *testing.T) {
	long := strings.Repeat(`\u0000`, 30_000)
	for name, body := range map[string]string{
		"type":    `{"v":1,"type":"` + long + `","instance":"x"}`,
		"member":  `{"v":1,"type":"ack","` + long + `":1}`,
		"value":   `{"v":1,"type":"ack","attempt":"` + long + `"}`,
		"version": `{"v":` + strings.Repeat("9", 100_000) + `}`,
		"nested":  strings.Repeat(`{"v":`, 40_000),
		"lists":   `{"v":1,"type":"heartbeat","inventory":` + strings.Repeat(`[`, 100_000),
	} {
		_, err := wire.Decode([]byte(body))
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		} else if n := len(err.Error()); n > maxFault {
			t.Errorf("%s: the error has %d bytes", name, n)
		}
	}
}
