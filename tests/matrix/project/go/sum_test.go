package sum

import (
	"os"
	"testing"
)

func TestSum(t *testing.T) {
	if Sum(40, 2) != 42 {
		t.Fatal("wrong")
	}
}

func TestFiles(t *testing.T) {
	if _, err := os.Stat("../go.mod"); err != nil {
		t.Fatal(err)
	}
}
