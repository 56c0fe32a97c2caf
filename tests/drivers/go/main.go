// gocql against a node: main PORT
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/gocql/gocql"

	"helenus/operations"
)

func check(err error, doing string) {
	if err != nil {
		log.Fatalf("%s: %v", doing, err)
	}
}

func expect(right bool, what string) {
	if !right {
		log.Fatalf("not so: %s", what)
	}
	fmt.Println("ok:", what)
}

func connect(port int, keyspace string) *gocql.Session {
	cluster := gocql.NewCluster("127.0.0.1")
	cluster.Port = port
	cluster.Keyspace = keyspace
	cluster.ProtoVersion = 4
	cluster.Timeout = 30 * time.Second
	cluster.ConnectTimeout = 30 * time.Second
	session, err := cluster.CreateSession()
	check(err, "connecting")
	return session
}

func main() {
	port, err := strconv.Atoi(os.Args[1])
	check(err, "reading the port")
	session := connect(port, "")
	// The driver asks at QUORUM, unless it is told otherwise.
	factor := os.Getenv("HELENUS_NODES")
	if factor == "" {
		factor = "1"
	}
	check(session.Query("CREATE KEYSPACE ks WITH replication = "+
		"{'class': 'SimpleStrategy', 'replication_factor': "+factor+"}").Exec(),
		"creating a keyspace")
	session.Close()

	session = connect(port, "ks")
	defer session.Close()
	check(session.Query("CREATE TABLE t (k int, c timeuuid, v text, n varint, s set<text>, "+
		"PRIMARY KEY (k, c))").Exec(), "creating a table")
	metadata, err := session.KeyspaceMetadata("ks")
	check(err, "reading the schema")
	expect(len(metadata.Tables["t"].PartitionKey) == 1, "the schema has the table's key")

	const rows = 1000
	for i := 0; i < rows; i++ {
		check(session.Query("INSERT INTO t (k, c, v, s) VALUES (?, ?, ?, ?)", i%10,
			gocql.TimeUUID(), strconv.Itoa(i), []string{"a", "b"}).Exec(), "inserting")
	}
	seen := map[string]bool{}
	iterator := session.Query("SELECT v FROM t").PageSize(77).Iter()
	var value string
	for iterator.Scan(&value) {
		seen[value] = true
	}
	check(iterator.Close(), "paging")
	expect(len(seen) == rows, "every row comes in some page")

	batch := session.NewBatch(gocql.UnloggedBatch)
	for i := 0; i < 10; i++ {
		batch.Query("INSERT INTO t (k, c, v) VALUES (?, ?, ?)", 100, gocql.TimeUUID(), "b")
	}
	check(session.ExecuteBatch(batch), "a batch")
	var count int
	check(session.Query("SELECT count(*) FROM t WHERE k = ?", 100).Scan(&count), "counting")
	expect(count == 10, "a batch is written")

	check(session.Query("CREATE TABLE counted (k int PRIMARY KEY, n counter)").Exec(),
		"creating a counter")
	one, several := operations.NewID(), operations.NewID()
	for i := 0; i < 3; i++ {
		check(operations.Named(session.Query("UPDATE counted SET n = n + 1 WHERE k = ?", 1),
			one).Exec(), "counting under an id")
		counters := session.NewBatch(gocql.CounterBatch)
		counters.Query("UPDATE counted SET n = n + ? WHERE k = ?", int64(10), 1)
		counters.Query("UPDATE counted SET n = n + ? WHERE k = ?", int64(10), 2)
		check(session.ExecuteBatch(operations.NamedBatch(counters, several)),
			"counting under an id in a batch")
	}
	var counted int64
	check(session.Query("SELECT n FROM counted WHERE k = 1").Scan(&counted), "reading a counter")
	expect(counted == 11, "what is sent again under its id counts once")

	err = session.Query("SELECT * FROM nosuch").Exec()
	refusal, is := err.(gocql.RequestError)
	expect(is && refusal.Code() == 0x2200, "an unknown table is error 0x2200")
}
