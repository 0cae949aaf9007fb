package processors

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1b": 1, " 64MiB ": 64 << 20, "64 mib": 64 << 20, "500KB": 500_000, "2GiB": 2 << 30, "1tb": 1e12,
		"9223372036854775807": 9223372036854775807,
	} {
		n, err := toBytes("f", text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"0", "-1MiB", "1.5GiB", "MiB", "64 MiBs", "ten", "8388608TiB", "9223372036854775808"} {
		_, err := toBytes("f", text)
		require.ErrorContains(t, err, "f: ", text)
	}
}
