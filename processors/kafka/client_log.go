package kafka

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// clientLog passes the client's own log on at the debug level: what a user has to
// know is said by the components.
type clientLog struct{ log *service.Logger }

// Level implements kgo.Logger.
func (clientLog) Level() kgo.LogLevel { return kgo.LogLevelInfo }

// Log implements kgo.Logger.
func (c clientLog) Log(level kgo.LogLevel, text string, pairs ...any) {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, " %v=%v", pairs[i], pairs[i+1])
	}
	c.log.Debugf("client %s: %s%s", level, text, b.String())
}

// brokerHook says which brokers cannot be reached, once a connection has stood.
// Before that the caller says it.
type brokerHook struct {
	nag  *nag
	last atomic.Pointer[error] // why the last connection did not come about, before on
	on   atomic.Bool           // faults are said
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h *brokerHook) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	switch {
	case err == nil:
	case h.on.Load():
		h.nag.about(fmt.Sprintf("broker %s:%d", meta.Host, meta.Port), unreached(meta, err))
	case !ours(err):
		h.last.Store(&err)
	}
}

// ping asks whether a broker answers. Its error is that of the connection, which
// knows more than that of the request.
func (h *brokerHook) ping(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	err := client.Ping(ctx)
	if last := h.last.Load(); err != nil && last != nil {
		err = *last
	}
	if err == nil {
		h.on.Store(true)
	}
	return err
}
