// lookup NAME...: the addresses of each, all asked for at once; and what is said at port 7.
// Without cgo, so it is Go's own resolver.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
)

func main() {
	var all sync.WaitGroup
	lines := make([]string, len(os.Args)-1)
	for i, name := range os.Args[1:] {
		all.Add(1)
		go func(i int, name string) {
			defer all.Done()
			found, err := net.LookupHost(name)
			lines[i] = strings.Join(found, " ")
			if err != nil {
				lines[i] = err.Error()
			}
		}(i, name)
	}
	all.Wait()
	fmt.Println(strings.Join(lines, "\n"))
	to, err := net.Dial("tcp", net.JoinHostPort(os.Args[1], "7"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	to.(*net.TCPConn).CloseWrite()
	io.Copy(os.Stdout, to)
}
