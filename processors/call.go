package processors

import (
	"context"
	"sync/atomic"
)

// call is the latest call of a processor by the framework. All processors of a list
// are called with contexts that end together, when the framework forces a stop, or
// once it has closed them. Any goroutine may use it.
type call struct {
	latest atomic.Pointer[context.Context]
}

func (c *call) begin(ctx context.Context) { c.latest.Store(&ctx) }

// forced says that the framework may have cut the batch off on its way through the
// list.
func (c *call) forced() bool {
	ctx := c.latest.Load()
	return ctx != nil && (*ctx).Err() != nil
}

// sameList says whether another processor is called in the same list.
func (c *call) sameList(other context.Context) bool {
	ctx := c.latest.Load()
	return ctx == nil || (*ctx).Done() == other.Done()
}
