package ports

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreePortsLieOutsideTheKernelsRange(t *testing.T) {
	free, err := Free(20)
	require.NoError(t, err)
	kernel := outgoing("/proc/sys/net/ipv4/ip_local_port_range")
	seen := map[int]bool{}
	for _, port := range free {
		require.False(t, seen[port], "%d twice", port)
		seen[port] = true
		if outside(kernel) != (span{}) {
			require.False(t, kernel.from <= port && port < kernel.to, "%d in %v", port, kernel)
		}
		l, err := net.Listen("tcp", Local(port))
		require.NoError(t, err, "somebody listens")
		require.NoError(t, l.Close())
	}
}

func TestOutside(t *testing.T) {
	for name, c := range map[string]struct{ kernel, want span }{
		"Linux":           {span{32768, 61000}, span{lowest, 32768}},
		"IANA":            {span{49152, 65536}, span{lowest, 49152}},
		"low":             {span{1024, 60000}, span{60000, 65536}},
		"low, few below":  {span{10999, 64000}, span{64000, 65536}},
		"all":             {span{1024, 65536}, span{}},
		"below the known": {span{1024, 5001}, span{lowest, 65536}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, outside(c.kernel)) })
	}
}

func TestOutgoing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "range")
	require.Equal(t, span{32768, 65536}, outgoing(file), "no file")
	require.NoError(t, os.WriteFile(file, []byte("16000\t65535\n"), 0o600))
	require.Equal(t, span{16000, 65536}, outgoing(file))
	require.NoError(t, os.WriteFile(file, []byte("some\n"), 0o600))
	require.Equal(t, span{32768, 65536}, outgoing(file), "another form")
}
