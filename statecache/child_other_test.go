//go:build !unix

package statecache

func child() bool { return false }
