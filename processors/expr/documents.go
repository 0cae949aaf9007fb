package expr

// OnlyDocuments reports whether no expression of the set looks at anything of a
// message but its document: all are constants, plain paths into the document, or
// paths compared with a constant.
func (s *Set) OnlyDocuments() bool {
	for i := range s.cells {
		source := s.cells[i].source
		if c, ok := source.(*comparison); ok {
			source = c.operand
		}
		switch source.(type) {
		case *constant, *path:
		default:
			return false
		}
	}
	return true
}
