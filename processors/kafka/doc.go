// Package kafka registers the input and the output redpanda over franz-go. Their
// fields, defaults and metadata are those of Redpanda Connect, so that a
// configuration moves between both; fields that are missing here are refused by
// lint. Only a program that does not link Redpanda Connect may import it.
//
// The way of a record through the input:
//
//	client -> poller -> shelf (a lane for each partition) -> ReadBatch -> ack -> lane -> commit
//
// The poller is the only caller of the client's poll. It puts records into their
// lanes and lets rebalances happen only between two polls, so that no record
// enters the lane of a partition that is gone. A lane lives from the assignment of
// its partition to its loss; an acknowledgement that comes later finds its lane
// closed and commits nothing. Batches leave a lane in the order of its offsets,
// and the position that is committed is the first offset that is not acknowledged.
package kafka
