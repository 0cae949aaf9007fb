package kafka

import (
	"fmt"
	"net"
	"strings"
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

// brokerHook says which brokers cannot be reached.
type brokerHook struct{ nag *nag }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h brokerHook) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		h.nag.about(fmt.Sprintf("broker %s:%d", meta.Host, meta.Port), explain(err))
	}
}
