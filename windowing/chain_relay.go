package windowing

import "github.com/connect-windowed/connect-windowed/watermark"

// BeginRelayed starts a step with rows that a watermark outside of the chain has
// judged: pair is what it told, w is W of its domain.
func (c *Chain) BeginRelayed(rows []Row, pair Pair, w watermark.Time, now watermark.Clock) {
	c.told, c.heard = pair, w
	c.begin(rows, now, false)
}

// relay passes on the pair that was told. Its rows are prepared; the invalid ones are
// counted by the operator behind it, which has a name.
func (c *Chain) relay() {
	if c.at == c.front {
		c.lates[c.at+1], c.close = c.told.Late, c.told.Close
		c.front++
	}
}

// Exit gives the pair behind the last stage, as far as the step has come, and W
// of the last event-time domain.
func (c *Chain) Exit() (Pair, watermark.Time) {
	n := len(c.stages)
	p := Pair{Late: c.lates[n], Close: c.lates[n]}
	if c.front == n {
		p.Close = c.close
	}
	w := c.heard
	for _, f := range c.frontier {
		if f != nil {
			w = f.Watermark()
		}
	}
	return p, w
}
