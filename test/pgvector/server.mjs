// PostgreSQL with pgvector on a free port of the loopback address, which it prints; it ends with its standard input.
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

const db = await PGlite.create({ extensions: { vector } })
const server = new PGLiteSocketServer({ db, port: 0, host: '127.0.0.1', maxConnections: 2 }) // one may be on its way out
await server.start()
console.log(server.getServerConn())
process.stdin.resume()
process.stdin.on('end', async () => {
  await server.stop()
  await db.close()
  process.exit(0)
})
