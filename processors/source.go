package processors

// InsideHost reports whether the component under construction stands in the
// `input` of a `windowed` host. An input calls it from its constructor, on the
// goroutine that constructs it.
//
// Such a host applies batches in the order in which it reads them, acknowledges
// them after its next commit and never refuses one. An input that elsewhere waits
// for an acknowledgement before it hands out more, to keep the order when a batch
// is refused, need not wait there: else every commit would have to wait for it.
func InsideHost() bool {
	n := nurseryHere()
	return n != nil && n.input
}
