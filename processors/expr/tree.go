package expr

// tree holds the paths that a Set reads, joined where they begin alike.
type tree struct {
	nodes  []*node // the first one is the document
	leaves int
}

// node is one step of paths, with the steps that follow.
type node struct {
	id       int
	leaf     int // number of the path that ends here, or noLeaf
	below    []int
	children []child
	filter   uint64 // bit of every child's key: most keys of a document are nobody's
}

const noLeaf = -1

// child is the way on from a node: the key in an object, the index in a list.
type child struct {
	key   string
	index int // fail when the key is no index
	node  *node
}

// filterBit spreads keys over 64 bits by their length and first byte.
func filterBit[T string | []byte](key T) uint64 {
	if len(key) == 0 {
		return 1
	}
	return 1 << ((uint(key[0]) + uint(len(key))*7) & 63)
}

func (t *tree) node() *node {
	n := &node{id: len(t.nodes), leaf: noLeaf}
	t.nodes = append(t.nodes, n)
	return n
}

// add gives a path its leaf, or finds the one that it has.
func (t *tree) add(path []segment) (leaf int) {
	if len(t.nodes) == 0 {
		t.node()
	}
	at := t.nodes[0]
	trail := []*node{at}
	for _, seg := range path {
		at = t.step(at, seg)
		trail = append(trail, at)
	}
	if at.leaf != noLeaf {
		return at.leaf
	}
	at.leaf = t.leaves
	t.leaves++
	for _, n := range trail {
		n.below = append(n.below, at.leaf)
	}
	return at.leaf
}

func (t *tree) step(n *node, seg segment) *node {
	for i := range n.children {
		if n.children[i].key == seg.key {
			return n.children[i].node
		}
	}
	next := t.node()
	n.children = append(n.children, child{key: seg.key, index: seg.index, node: next})
	n.filter |= filterBit(seg.key)
	return next
}

// find gives the child of a key as it stands in the document.
func (n *node) find(key []byte) *node {
	if n.filter&filterBit(key) == 0 {
		return nil
	}
	for i := range n.children {
		if n.children[i].key == string(key) {
			return n.children[i].node
		}
	}
	return nil
}

// at gives the child of an index.
func (n *node) at(index int) *node {
	for i := range n.children {
		if n.children[i].index == index {
			return n.children[i].node
		}
	}
	return nil
}
