package processors

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDryRunIsOffUntilSet(t *testing.T) {
	require.False(t, dryRun())
	SetDryRun(true)
	t.Cleanup(func() { SetDryRun(false) })
	require.True(t, dryRun())
	SetDryRun(false)
	require.False(t, dryRun())
}

func TestFaultReachesTheHookOnItsOwnGoroutine(t *testing.T) {
	t.Cleanup(func() { OnFault(nil) })
	fault := errors.New("damaged page")
	release, told := make(chan struct{}), make(chan error)
	OnFault(func(err error) {
		<-release
		told <- err
	})
	reportFault(fault) // returns although the hook blocks
	close(release)
	select {
	case err := <-told:
		require.Same(t, fault, err)
	case <-time.After(2 * time.Minute):
		t.Fatal("the hook was not called")
	}
}

func TestFaultWithoutHookOrErrorIsSilent(t *testing.T) {
	OnFault(nil)
	reportFault(errors.New("nobody listens"))
	t.Cleanup(func() { OnFault(nil) })
	OnFault(func(err error) { panic("called with " + err.Error()) })
	reportFault(nil)
}
