package statecache

func child() bool { return false }
