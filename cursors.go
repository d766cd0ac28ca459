package memwrite

import (
	"crypto/sha256"
	"errors"
)

// cursors are those a walk over pages has been given. A service that gives one
// again leads it in a circle: following it would never end, and ending there
// without a word would pass for the whole list.
type cursors map[[sha256.Size]byte]struct{}

func (c cursors) again(op, next string) error {
	sum := sha256.Sum256([]byte(next)) // of any length, and there may be many
	if _, known := c[sum]; known {
		return &Error{Op: op, Kind: KindServer, causes: []error{errors.New("the service gave a cursor twice; the list is not whole")}}
	}
	c[sum] = struct{}{}
	return nil
}
