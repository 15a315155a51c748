package bookings;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity
public class Customer {
    @Id
    private String id;

    private int bookings;

    int countBooking() {
        return ++bookings;
    }
}
