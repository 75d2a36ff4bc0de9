module github.com/OWNER/intact/kits/go

go 1.21
