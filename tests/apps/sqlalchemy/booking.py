import json
import uuid

from sqlalchemy import Column, ForeignKey, MetaData, Table, Text, insert
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[str] = mapped_column(primary_key=True)
    bookings: Mapped[int]


class Booking(Base):
    __tablename__ = "booking"
    reference: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(ForeignKey("customer.id"))
    number: Mapped[int]
    seats: Mapped[int]


# A Table, not a mapped class: for a class SQLAlchemy asks for the id with RETURNING, which needs SELECT. These five columns
# and no others: the database sets id, txid and created_at. Metadata of its own: Alembic leaves the table alone.
message = Table(
    "message",
    MetaData(schema="outbox"),
    Column("topic", Text),
    Column("key", Text),
    Column("payload", Text),
    Column("headers", JSONB(none_as_null=True)),
    Column("traceparent", Text),
)


def book(session: Session, customer_id: str, reference: uuid.UUID, seats: int, traceparent: str | None) -> Booking:
    """The caller commits, or rolls back: the booking and its messages together."""
    # The lock first: who books for this customer next inserts its messages after these are committed.
    customer = session.get_one(Customer, customer_id, with_for_update=True)
    customer.bookings += 1
    booking = Booking(reference=reference, customer=customer.id, number=customer.bookings, seats=seats)
    session.add(booking)

    def row(event: str, **payload: object) -> dict:
        payload |= {"reference": str(reference), "customer": customer.id, "number": booking.number}
        return {
            "topic": "bookings",
            "key": customer.id,
            "payload": json.dumps(payload),
            "headers": {"event": event},
            "traceparent": traceparent,
        }

    rows = [row("BookingCreated"), *(row("SeatReserved", seat=seat) for seat in range(1, seats + 1))]
    session.execute(insert(message), rows)  # in the order of the list
    return booking
