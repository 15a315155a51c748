"""Several threads book; some transactions are rolled back, some stay open for a while. Prints what must not arrive."""

import os
import random
import sys
import threading
import time
import uuid

from booking import book, message
from sqlalchemy import create_engine, insert
from sqlalchemy.orm import Session

WORKERS, ATTEMPTS, CUSTOMERS = (int(os.environ[name]) for name in ("WORKERS", "ATTEMPTS", "CUSTOMERS"))
engine = create_engine(os.environ["APP_DATABASE"], pool_size=WORKERS)
failed = []


class Refused(Exception):
    pass


def attempt(number: int) -> None:
    reference, inner = uuid.uuid4(), uuid.uuid4()
    customer = f"c{random.randrange(CUSTOMERS)}"
    trace = f"00-{reference.hex}-{reference.hex[:16]}-01"
    with Session(engine) as session:
        try:
            with session.begin():
                book(session, customer, reference, number % 4, trace)
                if number % 11 == 5:
                    try:
                        with session.begin_nested():  # a savepoint
                            session.execute(insert(message), {"topic": "bookings", "key": customer, "payload": str(inner)})
                            raise Refused
                    except Refused:
                        print("rolled_back", inner)
                if number % 20 == 0:
                    time.sleep(random.uniform(0.05, 0.25))
                if number % 7 == 3:
                    raise Refused
            print("committed", reference)
        except Refused:
            print("rolled_back", reference)


def work() -> None:
    try:
        for number in range(ATTEMPTS):
            attempt(number)
    except Exception as error:  # a thread's error must fail the program
        failed.append(error)
        raise


threads = [threading.Thread(target=work) for _ in range(WORKERS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(1 if failed else 0)
