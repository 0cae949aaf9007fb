// Package processors registers the event-time components of connect-windowed
// with Benthos: importing it for its side effects is all a build needs.
//
//	import _ "github.com/connect-windowed/connect-windowed/processors"
//
// It is the only package of the module, beside the command and the tests, that
// imports Benthos. What the components compute lives in the packages below it;
// here stand their specs, the reading of messages, the rendering of rows and the
// adapters to the interfaces of Benthos.
//
// Two switches are process-wide, because a constructor cannot learn them from
// its configuration: SetDryRun keeps every state file closed, OnFault tells the
// program about a fault that no stream can report. The command
// connect-windowed sets both; a build of your own may leave them alone.
package processors
