module github.com/memwrite/memwrite-go

go 1.26
