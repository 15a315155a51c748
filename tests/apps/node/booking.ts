import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { integer, jsonb, pgSchema, pgTable, text, uuid } from 'drizzle-orm/pg-core'

const customer = pgTable('customer', {
  id: text().primaryKey(),
  bookings: integer().notNull()
})
const booking = pgTable('booking', {
  reference: uuid().primaryKey(),
  customer: text().notNull(),
  number: integer().notNull(),
  seats: integer().notNull()
})

// These five columns and no others: Drizzle names every column that it knows in an INSERT, and the database sets id, txid
// and created_at. Keep the schema out of drizzle-kit: schemaFilter: ['public'].
export const message = pgSchema('outbox').table('message', {
  topic: text().notNull(),
  key: text(),
  payload: text(),
  headers: jsonb(),
  traceparent: text()
})

/** What `db.transaction` passes on: a statement of `db` itself is in another transaction. */
export type Transaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]
export type Request = { customerId: string; seats: number; reference?: string; traceparent?: string }

/** The caller commits, or rolls back: the booking and its messages together. */
export async function book(tx: Transaction, { customerId, seats, reference = randomUUID(), traceparent }: Request) {
  // The lock first: who books for this customer next inserts its messages after these are committed.
  const [locked] = await tx
    .update(customer)
    .set({ bookings: sql`${customer.bookings} + 1` })
    .where(eq(customer.id, customerId))
    .returning()
  if (!locked) throw new Error(`no customer ${customerId}`)
  const number = locked.bookings
  await tx.insert(booking).values({ reference, customer: customerId, number, seats })

  const row = (event: string, more: object = {}) => ({
    topic: 'bookings',
    key: customerId,
    payload: JSON.stringify({ reference, customer: customerId, number, ...more }),
    headers: { event },
    traceparent
  })
  const reserved = Array.from({ length: seats }, (_, seat) => row('SeatReserved', { seat: seat + 1 }))
  await tx.insert(message).values([row('BookingCreated'), ...reserved]) // in the order of the list
  return { reference, number }
}
