// Package longshore_test checks the house rules on the repository itself. What they are, and the
// proof that each catches what it is for, is in test/house. Nothing can import this package.
package longshore_test

import (
	"os"
	"testing"

	"github.com/longshore-run/longshore/test/house"
)

func TestRepository_KeepsTheHouseRules(t *testing.T) {
	violations, err := house.Check(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}
