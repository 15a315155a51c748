package bookings;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import java.util.UUID;

@Entity
public class Booking {
    @Id
    private UUID reference;

    private String customer;
    private int number;
    private int seats;

    protected Booking() {}

    Booking(UUID reference, String customer, int number, int seats) {
        this.reference = reference;
        this.customer = customer;
        this.number = number;
        this.seats = seats;
    }
}
