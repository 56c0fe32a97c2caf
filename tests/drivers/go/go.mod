module helenus/drivers

go 1.20

require (
	github.com/gocql/gocql v1.6.0
	helenus/operations v0.0.0
)

replace helenus/operations => ./src/helenus/operations
