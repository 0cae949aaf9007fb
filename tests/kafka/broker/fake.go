package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/connect-windowed/connect-windowed/tests/ports"
)

// Fake is kfake on a port.
type Fake struct {
	port    int
	options []kfake.Opt
	cluster *kfake.Cluster
}

// StartFake starts kfake with its data in a folder. Groups need not wait long for
// members that are gone.
func StartFake(dir string, options ...kfake.Opt) (*Fake, error) {
	free, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	f := &Fake{port: free[0]}
	f.options = append([]kfake.Opt{kfake.NumBrokers(1), kfake.Ports(f.port), kfake.DataDir(dir),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond)}, options...)
	return f, f.Start()
}

// Cluster is the cluster of this life, to inject faults into.
func (f *Fake) Cluster() *kfake.Cluster { return f.cluster }

// Addr implements Broker.
func (f *Fake) Addr() string { return ports.Local(f.port) }

// Start implements Broker.
func (f *Fake) Start() (err error) {
	f.cluster, err = kfake.NewCluster(f.options...)
	return err
}

// Stop implements Broker.
func (f *Fake) Stop() error {
	f.cluster.Close()
	return nil
}

// Kill implements Broker. The connections of clients break; what they were told
// is stored.
func (f *Fake) Kill() error { return f.Stop() }
