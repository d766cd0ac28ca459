// Package disk puts a layer between SQLite and the operating system that sees
// every write and sync, and may let one fail as a full or broken disk does. It
// is for tests.
package disk

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Op is what is done to a file.
type Op string

const (
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
)

// What a disk may answer, in SQLite's numbers.
const (
	OK      int32 = lib.SQLITE_OK
	Full    int32 = lib.SQLITE_FULL        // ENOSPC
	EIO     int32 = lib.SQLITE_IOERR_WRITE // of a write
	SyncEIO int32 = lib.SQLITE_IOERR_FSYNC // of a sync
)

// Disk is one layer; its name is what SQLite's parameter vfs takes.
type Disk struct {
	name  string
	syncs atomic.Int64
	judge atomic.Pointer[func(op Op, path string) int32]
}

// SQLite's calls carry nothing of ours but the file they are about, so what a
// file belongs to is looked up here.
var (
	mu      sync.RWMutex
	made    int
	disks   = map[uintptr]*Disk{}   // by the VFS
	files   = map[uintptr]file{}    // by the file
	methods = map[uintptr]uintptr{} // the layer's copy of each table of methods
)

type file struct {
	disk  *Disk
	path  string
	below *lib.Tsqlite3_io_methods // the operating system's methods
}

// New registers a layer. It stays for the life of the process.
func New() (*Disk, error) {
	mu.Lock()
	defer mu.Unlock()
	tls := libc.NewTLS()
	defer tls.Close()
	base := lib.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return nil, fmt.Errorf("disk: SQLite has no way to the operating system here")
	}
	made++
	d := &Disk{name: fmt.Sprintf("memwrite%d", made)}
	size := unsafe.Sizeof(lib.Tsqlite3_vfs{})
	layer := libc.Xmalloc(tls, libc.Tsize_t(size))
	name, err := libc.CString(d.name)
	if layer == 0 || err != nil {
		return nil, fmt.Errorf("disk: out of memory")
	}
	v := at[lib.Tsqlite3_vfs](layer)
	*v = *at[lib.Tsqlite3_vfs](base)
	v.FpNext, v.FzName = 0, name
	v.FxOpen = pointer(open)
	disks[layer] = d
	if rc := lib.Xsqlite3_vfs_register(tls, layer, 0); rc != lib.SQLITE_OK {
		return nil, fmt.Errorf("disk: SQLite refuses the layer: %d", rc)
	}
	return d, nil
}

// Name is what SQLite knows the layer by.
func (d *Disk) Name() string { return d.name }

// Syncs is how many syncs of a log have come back so far.
func (d *Disk) Syncs() int64 { return d.syncs.Load() }

// Fail lets judge answer for the disk: OK lets an operation through. nil heals
// the disk. judge is called by many goroutines.
func (d *Disk) Fail(judge func(op Op, path string) int32) {
	if judge == nil {
		d.judge.Store(nil)
		return
	}
	d.judge.Store(&judge)
}

func (d *Disk) says(op Op, path string) int32 {
	if judge := d.judge.Load(); judge != nil {
		return (*judge)(op, path)
	}
	return OK
}

// at reads what is behind one of SQLite's addresses, which are not Go's.
func at[T any](address uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// pointer makes a function one that SQLite can call, as the driver does.
func pointer[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f T }{f})) }

// call is the other way round.
func call[T any](f uintptr) T { return *(*T)(unsafe.Pointer(&struct{ f uintptr }{f})) }

func open(tls *libc.TLS, vfs, name, f uintptr, flags int32, out uintptr) int32 {
	base := lib.Xsqlite3_vfs_find(tls, 0)
	xOpen := call[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](at[lib.Tsqlite3_vfs](base).FxOpen)
	rc := xOpen(tls, vfs, name, f, flags, out)
	h := at[lib.Tsqlite3_file](f)
	if rc != lib.SQLITE_OK || h.FpMethods == 0 {
		return rc
	}
	mu.Lock()
	defer mu.Unlock()
	path := ""
	if name != 0 {
		path = libc.GoString(name)
	}
	files[f] = file{disks[vfs], path, at[lib.Tsqlite3_io_methods](h.FpMethods)}
	if methods[h.FpMethods] == 0 {
		layer := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
		m := at[lib.Tsqlite3_io_methods](layer)
		*m = *at[lib.Tsqlite3_io_methods](h.FpMethods)
		m.FxClose, m.FxWrite, m.FxTruncate, m.FxSync = pointer(closed), pointer(write), pointer(truncate), pointer(synced)
		methods[h.FpMethods] = layer
	}
	h.FpMethods = methods[h.FpMethods]
	return rc
}

func of(f uintptr) file {
	mu.RLock()
	defer mu.RUnlock()
	return files[f]
}

func closed(tls *libc.TLS, f uintptr) int32 {
	x := of(f)
	mu.Lock()
	delete(files, f)
	mu.Unlock()
	return call[func(*libc.TLS, uintptr) int32](x.below.FxClose)(tls, f)
}

func write(tls *libc.TLS, f, from uintptr, n int32, offset lib.Tsqlite3_int64) int32 {
	x := of(f)
	if rc := x.disk.says(Write, x.path); rc != OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](x.below.FxWrite)(tls, f, from, n, offset)
}

func truncate(tls *libc.TLS, f uintptr, size lib.Tsqlite3_int64) int32 {
	x := of(f)
	if rc := x.disk.says(Truncate, x.path); rc != OK {
		return rc
	}
	return call[func(*libc.TLS, uintptr, lib.Tsqlite3_int64) int32](x.below.FxTruncate)(tls, f, size)
}

func synced(tls *libc.TLS, f uintptr, flags int32) int32 {
	x := of(f)
	if rc := x.disk.says(Sync, x.path); rc != OK {
		return rc
	}
	rc := call[func(*libc.TLS, uintptr, int32) int32](x.below.FxSync)(tls, f, flags)
	if rc == lib.SQLITE_OK && strings.HasSuffix(x.path, "-wal") {
		x.disk.syncs.Add(1)
	}
	return rc
}
