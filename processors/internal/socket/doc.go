// Package socket sets what Go's dialer has no field for.
package socket
