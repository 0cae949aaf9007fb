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
//
// What has to hold:
//
//   - One batch of a partition is in flight at a time: the next comes when the one
//     before is acknowledged, so that a refused batch does not change the order.
//     Only inside of a windowed host, which refuses nothing, several may be.
//   - The poller ends, and has allowed the rebalance, before the group is left: a
//     poll that was cut off keeps it waiting as well.
//   - The client is told what to pause and what may be committed with the lock of
//     the shelf held: else a pause could overtake the resumption after it, and a
//     mark the loss of its partition.
//   - A session ends with a fault that its client cannot mend, which is a topic that
//     was created again. The next one begins where the group's offsets say, or, for
//     explicit partitions, where the former session came to.
package kafka
