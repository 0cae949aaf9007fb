//go:build !failpoints

package failpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHitIsNothingWithoutTheTag(t *testing.T) {
	t.Setenv(Env, AfterCommit)
	for _, name := range Names() {
		Hit(name)
	}
	require.False(t, Enabled)
	t.Setenv(EnvGeneration, "65536")
	t.Setenv(EnvPart, "3")
	require.Zero(t, Generation())
	require.Zero(t, Part())
}
