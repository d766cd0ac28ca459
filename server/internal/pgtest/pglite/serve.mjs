// A PostgreSQL in WebAssembly with the pgvector extension, for one client at a
// time. It prints its port, and ends with its standard input.
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

const db = await PGlite.create({
  extensions: { vector },
  startParams: PGlite.defaultStartParams.filter((p) => p !== '-F'), // fsync stays on: the store asks for it
})
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 1 })
server.addEventListener('listening', (e) => console.log(e.detail.port))
await server.start()
process.stdin.on('end', () => process.exit(0)).resume()
