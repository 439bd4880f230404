module example.org/everything

go 1.19
