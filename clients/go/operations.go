// Package operations gives writes through gocql an operation id: a write that is sent again takes
// effect once.
//
//	err := operations.Named(
//		session.Query("UPDATE plays SET n = n + 1 WHERE song = ?", "Blue in Green"),
//		operations.NewID()).Exec()
//
// The id travels in the custom payload, which the driver sends with every attempt of a request. So
// its own retries, and speculative execution, are safe for statements that are not idempotent by
// themselves: they are marked idempotent, and a node that knows the id answers without doing it
// again. A program that tries again itself gives the same id.
package operations

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/gocql/gocql"
)

const payloadKey = "helenus-op"

// NewID returns a new name for an operation: a UUID of version 7. It panics if the system has no
// random numbers.
func NewID() gocql.UUID {
	var id gocql.UUID
	if _, err := rand.Read(id[6:]); err != nil {
		panic(err)
	}
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], uint64(time.Now().UnixMilli()))
	copy(id[:6], stamp[2:])
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}

// Named makes the query the operation of that id. The query has no other custom payload.
func Named(query *gocql.Query, id gocql.UUID) *gocql.Query {
	return query.Idempotent(true).CustomPayload(map[string][]byte{payloadKey: id.Bytes()})
}

// NamedBatch makes the batch, as it is now, the operation of that id: all of it is one.
func NamedBatch(batch *gocql.Batch, id gocql.UUID) *gocql.Batch {
	if batch.CustomPayload == nil {
		batch.CustomPayload = map[string][]byte{}
	}
	batch.CustomPayload[payloadKey] = id.Bytes()
	for i := range batch.Entries {
		batch.Entries[i].Idempotent = true
	}
	return batch
}
