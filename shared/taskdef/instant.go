package taskdef

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Instant is a time in Unix milliseconds; 0 is none. In JSON it is a number of seconds with three decimals, the form
// that every SDK takes.
type Instant int64

// At is the Instant of t.
func At(t time.Time) Instant { return Instant(t.UnixMilli()) }

// Time is i as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// MarshalJSON writes seconds with three decimals.
func (i Instant) MarshalJSON() ([]byte, error) {
	sign, ms := "", int64(i)
	if ms < 0 {
		sign, ms = "-", -ms
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, ms/1000, ms%1000), nil
}

// UnmarshalJSON reads a number of seconds.
func (i *Instant) UnmarshalJSON(data []byte) error {
	seconds, err := strconv.ParseFloat(string(data), 64)
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e12 {
		return fmt.Errorf("%s is not a time in seconds", show(string(data)))
	}
	*i = Instant(math.Round(seconds * 1000))
	return nil
}
