package bookings;

import jakarta.persistence.EntityManager;
import jakarta.persistence.LockModeType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

@Service
public class Bookings {
    private final EntityManager entities;
    private final Outbox outbox;

    Bookings(EntityManager entities, Outbox outbox) {
        this.entities = entities;
        this.outbox = outbox;
    }

    @Transactional
    public void book(String customerId, UUID reference, int seats, String traceparent) {
        // The lock first: who books for this customer next inserts its messages after these are committed.
        var customer = entities.find(Customer.class, customerId, LockModeType.PESSIMISTIC_WRITE);
        var number = customer.countBooking();
        entities.persist(new Booking(reference, customerId, number, seats));

        List<Outbox.Message> messages = new ArrayList<>();
        var booking = Map.of("reference", reference, "customer", customerId, "number", number);
        messages.add(new Outbox.Message("bookings", customerId, booking, Map.of("event", "BookingCreated"), traceparent));
        for (int seat = 1; seat <= seats; seat++) {
            var reserved = Map.of("reference", reference, "customer", customerId, "number", number, "seat", seat);
            messages.add(new Outbox.Message("bookings", customerId, reserved, Map.of("event", "SeatReserved"), traceparent));
        }
        outbox.publish(messages);
    }
}
