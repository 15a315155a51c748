package bookings;

import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.jdbc.core.ConnectionCallback;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Several threads book; some transactions are rolled back, some stay open for a while. Prints what must not arrive. */
@SpringBootApplication
public class Load implements CommandLineRunner {
    private static final int WORKERS = Integer.parseInt(System.getenv("WORKERS"));
    private static final int ATTEMPTS = Integer.parseInt(System.getenv("ATTEMPTS"));
    private static final int CUSTOMERS = Integer.parseInt(System.getenv("CUSTOMERS"));

    private final Bookings bookings;
    private final Outbox outbox;
    private final TransactionTemplate whole;
    private final JdbcTemplate jdbc;

    Load(Bookings bookings, Outbox outbox, JdbcTemplate jdbc, PlatformTransactionManager transactions) {
        this.bookings = bookings;
        this.outbox = outbox;
        this.whole = new TransactionTemplate(transactions);
        this.jdbc = jdbc;
    }

    private static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    public static void main(String[] args) {
        SpringApplication.run(Load.class, args).close();
    }

    @Override
    public void run(String... args) throws Exception {
        var threads = Executors.newFixedThreadPool(WORKERS);
        Callable<Void> work = () -> {
            for (int number = 0; number < ATTEMPTS; number++) attempt(number);
            return null;
        };
        var results = threads.invokeAll(IntStream.range(0, WORKERS).mapToObj(worker -> work).toList());
        threads.shutdown();
        for (var result : results) result.get(); // a thread's error must fail the program
    }

    private void attempt(int number) {
        UUID reference = UUID.randomUUID(), inner = UUID.randomUUID();
        var random = ThreadLocalRandom.current();
        var customer = "c" + random.nextInt(CUSTOMERS);
        var hex = reference.toString().replace("-", "");
        try {
            whole.executeWithoutResult(transaction -> {
                bookings.book(customer, reference, number % 4, "00-" + hex + "-" + hex.substring(0, 16) + "-01");
                if (number % 11 == 5) refuseWithin(customer, inner);
                if (number % 20 == 0) sleep(random.nextInt(50, 250));
                if (number % 7 == 3) throw new Refused();
            });
            System.out.println("committed " + reference);
        } catch (Refused refused) {
            System.out.println("rolled_back " + reference);
        }
    }

    /** A savepoint that is rolled back: of the connection, because Spring has none for JPA. */
    private void refuseWithin(String customer, UUID inner) {
        jdbc.execute((ConnectionCallback<Void>) connection -> {
            var savepoint = connection.setSavepoint();
            outbox.publish(List.of(new Outbox.Message("bookings", customer, Map.of("inner", inner), null, null)));
            connection.rollback(savepoint);
            return null;
        });
        System.out.println("rolled_back " + inner);
    }

    private static void sleep(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
