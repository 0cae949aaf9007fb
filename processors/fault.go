package processors

import "sync/atomic"

// faultHook holds the function that OnFault set, or nil.
var faultHook atomic.Pointer[func(error)]

// OnFault sets the function that is told about faults of running components: a
// position that carries another payload than before, a damaged page of a state
// file. It replaces the function set before; nil sets none, which is how the
// process starts.
//
// An input cannot end a stream with an error in Benthos, it can only fall
// silent. A faulted component therefore stops reading, acknowledges nothing
// more, writes the fault to the log and the metrics, and then calls f. What
// happens to the process is f's decision: the command connect-windowed stops its
// stream and exits 1.
//
// f runs on a goroutine of its own and may block. It may be called several
// times, also concurrently, once for each component that faults. The error is
// never nil. OnFault is safe for concurrent use.
func OnFault(f func(error)) {
	if f == nil {
		faultHook.Store(nil)
		return
	}
	faultHook.Store(&f)
}

// reportFault tells the process about a fault of a running component and does
// not wait for what it does about it. The component calls it once, after it has
// logged the fault and has stopped reading.
func reportFault(err error) {
	if f := faultHook.Load(); f != nil && err != nil {
		go (*f)(err)
	}
}
