// Package tests proves the product from outside: through the YAML that a user
// writes, against answers that came from elsewhere.
package tests

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
