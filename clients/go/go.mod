module helenus/operations

go 1.20

require github.com/gocql/gocql v1.6.0
