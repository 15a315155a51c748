// Several workers book; some transactions are rolled back, some stay open for a while. Prints what must not arrive.
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { book, message } from './booking.ts'

const [workers = 0, attempts = 0, customers = 0] = ['WORKERS', 'ATTEMPTS', 'CUSTOMERS'].map((name) => Number(process.env[name]))
const pool = new pg.Pool({ connectionString: process.env.APP_DATABASE, max: workers })
const db = drizzle(pool)

class Refused extends Error {}

async function attempt(number: number): Promise<void> {
  const [reference, inner] = [randomUUID(), randomUUID()]
  const hex = reference.replaceAll('-', '')
  const customerId = `c${randomInt(customers)}`
  try {
    await db.transaction(async (tx) => {
      await book(tx, { customerId, reference, seats: number % 4, traceparent: `00-${hex}-${hex.slice(0, 16)}-01` })
      if (number % 11 === 5) {
        try {
          // A transaction within a transaction is a savepoint.
          await tx.transaction(async (savepoint) => {
            await savepoint.insert(message).values({ topic: 'bookings', key: customerId, payload: inner })
            throw new Refused()
          })
        } catch (error) {
          if (!(error instanceof Refused)) throw error
          console.log('rolled_back', inner)
        }
      }
      if (number % 20 === 0) await setTimeout(randomInt(50, 250))
      if (number % 7 === 3) throw new Refused()
    })
    console.log('committed', reference)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    console.log('rolled_back', reference)
  }
}

await Promise.all(
  Array.from({ length: workers }, async () => {
    for (let number = 0; number < attempts; number += 1) await attempt(number)
  })
)
await pool.end()
