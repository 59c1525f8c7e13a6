package bus

import (
	"strconv"
	"testing"
)

func TestRecent_KnowsWhatCameLatelyAndGrowsNoFurther(t *testing.T) {
	var r recent
	for n := range 5 * remembered {
		if id := strconv.Itoa(n); !r.first(id) || r.first(id) {
			t.Fatalf("%d is not taken for new once", n)
		}
		if n >= remembered && r.first(strconv.Itoa(n-remembered)) {
			t.Fatalf("%d came lately, and is not known after %d", n-remembered, n)
		}
		if held := len(r.now) + len(r.before); held > 2*remembered {
			t.Fatalf("%d ids are held", held)
		}
	}
}
