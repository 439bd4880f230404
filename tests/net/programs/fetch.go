// fetch URL: what is there, with Go's own TLS and the resolver of libc or, by GODEBUG, Go's.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if _, err = io.Copy(os.Stdout, answer.Body); err != nil {
		log.Fatal(err)
	}
}
