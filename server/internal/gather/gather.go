// Package gather puts a layer between SQLite and the operating system that
// writes what is appended to a log in one go. SQLite appends to it by two small
// writes a page, which cost more than all that is in them.
//
// What waits is written before the log is synced, read, measured or cut. SQLite
// tells other connections of a commit only after the log was synced, as long as
// synchronous is FULL; with less than that, they would look for what waits here.
package gather

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// room is how much may wait. SQLite's own layer writes less than 128 KiB at once.
const room = 124 << 10

// methods is a table of methods as SQLite takes it, with what is behind it.
type methods struct {
	table lib.Tsqlite3_io_methods
	below uintptr // the table of the layer below
	state uintptr // where a file keeps its state, counted from its begin
}

// state is what waits for one file. It lies behind what the layer below keeps of
// the file, in SQLite's memory.
type state struct {
	buffer uintptr
	start  int64 // where in the file it belongs
	n      int64 // how much it is
}

var (
	mu     sync.Mutex
	layers = map[string]uintptr{}     // by the name of what is below
	below  = map[uintptr]uintptr{}    // what is below a layer
	tables = map[[2]uintptr]uintptr{} // by the table below, and where the state is
)

// Over gives the name of the layer over a registered VFS, or over the operating
// system's. It stays for the life of the process.
func Over(vfs string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	tls := libc.NewTLS()
	defer tls.Close()
	name := "gather"
	var under uintptr
	if vfs != "" {
		name += "-" + vfs
		s, err := libc.CString(vfs)
		if err != nil {
			return "", err
		}
		under = s
		defer libc.Xfree(tls, s)
	}
	if layers[vfs] != 0 {
		return name, nil
	}
	base := lib.Xsqlite3_vfs_find(tls, under)
	if base == 0 {
		return "", fmt.Errorf("gather: SQLite knows no VFS %q", vfs)
	}
	layer := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	called, err := libc.CString(name)
	if layer == 0 || err != nil {
		return "", fmt.Errorf("gather: out of memory")
	}
	v := at[lib.Tsqlite3_vfs](layer)
	*v = *at[lib.Tsqlite3_vfs](base)
	v.FpNext, v.FzName = 0, called
	v.FszOsFile = int32(behind(v.FszOsFile)) + int32(unsafe.Sizeof(state{}))
	v.FxOpen = pointer(open)
	if rc := lib.Xsqlite3_vfs_register(tls, layer, 0); rc != lib.SQLITE_OK {
		return "", fmt.Errorf("gather: SQLite refuses the layer: %d", rc)
	}
	layers[vfs], below[layer] = layer, base
	return name, nil
}

// behind is where something may lie behind so many bytes.
func behind(size int32) uintptr { return (uintptr(size) + 7) &^ 7 }

// at reads what is behind one of SQLite's addresses, which are not Go's.
func at[T any](address uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// pointer makes a function one that SQLite can call, as the driver does.
func pointer[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f T }{f})) }

// call is the other way round.
func call[T any](f uintptr) T { return *(*T)(unsafe.Pointer(&struct{ f uintptr }{f})) }

func open(tls *libc.TLS, vfs, name, f uintptr, flags int32, out uintptr) int32 {
	mu.Lock()
	defer mu.Unlock()
	base := at[lib.Tsqlite3_vfs](below[vfs])
	xOpen := call[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](base.FxOpen)
	rc := xOpen(tls, below[vfs], name, f, flags, out)
	h := at[lib.Tsqlite3_file](f)
	if rc != lib.SQLITE_OK || h.FpMethods == 0 || flags&lib.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	where := behind(base.FszOsFile)
	key := [2]uintptr{h.FpMethods, where}
	if tables[key] == 0 {
		made := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(methods{})))
		if made == 0 {
			return rc // as it would be without a layer
		}
		m := at[methods](made)
		*m = methods{*at[lib.Tsqlite3_io_methods](h.FpMethods), h.FpMethods, where}
		m.table.FxClose, m.table.FxRead, m.table.FxWrite = pointer(closed), pointer(read), pointer(write)
		m.table.FxTruncate, m.table.FxSync, m.table.FxFileSize = pointer(truncate), pointer(synced), pointer(measured)
		tables[key] = made
	}
	h.FpMethods = tables[key]
	*of(f) = state{}
	return rc
}

// of gives what waits for a file, under the methods of the layer below.
func of(f uintptr) *state {
	return at[state](f + at[methods](at[lib.Tsqlite3_file](f).FpMethods).state)
}

func under(f uintptr) *lib.Tsqlite3_io_methods {
	return at[lib.Tsqlite3_io_methods](at[methods](at[lib.Tsqlite3_file](f).FpMethods).below)
}

type writer = func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32

func write(tls *libc.TLS, f, from uintptr, n int32, offset lib.Tsqlite3_int64) int32 {
	s := of(f)
	if s.n > 0 && (offset != s.start+s.n || s.n+int64(n) > room) {
		if rc := flush(tls, f); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if s.buffer == 0 {
		s.buffer = libc.Xmalloc(tls, room)
	}
	if s.buffer == 0 || n > room {
		return call[writer](under(f).FxWrite)(tls, f, from, n, offset)
	}
	if s.n == 0 {
		s.start = offset
	}
	copy(unsafe.Slice(at[byte](s.buffer+uintptr(s.n)), n), unsafe.Slice(at[byte](from), n))
	s.n += int64(n)
	return lib.SQLITE_OK
}

// flush writes what waits. What cannot be written is given up: SQLite gives up
// the transaction it is part of.
func flush(tls *libc.TLS, f uintptr) int32 {
	s := of(f)
	if s.n == 0 {
		return lib.SQLITE_OK
	}
	n := int32(s.n)
	s.n = 0
	return call[writer](under(f).FxWrite)(tls, f, s.buffer, n, s.start)
}

func closed(tls *libc.TLS, f uintptr) int32 {
	rc := flush(tls, f)
	libc.Xfree(tls, of(f).buffer)
	if down := call[func(*libc.TLS, uintptr) int32](under(f).FxClose)(tls, f); rc == lib.SQLITE_OK {
		rc = down
	}
	return rc
}

func read(tls *libc.TLS, f, to uintptr, n int32, offset lib.Tsqlite3_int64) int32 {
	if rc := flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return call[writer](under(f).FxRead)(tls, f, to, n, offset)
}

func truncate(tls *libc.TLS, f uintptr, size lib.Tsqlite3_int64) int32 {
	if rc := flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, lib.Tsqlite3_int64) int32](under(f).FxTruncate)(tls, f, size)
}

func synced(tls *libc.TLS, f uintptr, flags int32) int32 {
	if rc := flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, int32) int32](under(f).FxSync)(tls, f, flags)
}

func measured(tls *libc.TLS, f, size uintptr) int32 {
	if rc := flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, uintptr) int32](under(f).FxFileSize)(tls, f, size)
}
