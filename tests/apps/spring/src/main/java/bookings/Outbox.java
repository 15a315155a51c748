package bookings;

import java.util.List;
import java.util.Map;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import tools.jackson.databind.json.JsonMapper;

/**
 * Writes messages in the caller's transaction, which JPA and JdbcTemplate share.
 *
 * <p>No entity: Hibernate asks for the id with RETURNING, which needs SELECT. These five columns and no others: the database
 * sets id, txid and created_at.
 */
@Component
public class Outbox {
    private static final String INSERT =
            "INSERT INTO outbox.message (topic, key, payload, headers, traceparent) VALUES (?, ?, ?, ?::jsonb, ?)";

    private final JdbcTemplate jdbc;
    private final JsonMapper json;

    Outbox(JdbcTemplate jdbc, JsonMapper json) {
        this.jdbc = jdbc;
        this.json = json;
    }

    public record Message(String topic, String key, Map<String, ?> payload, Map<String, ?> headers, String traceparent) {}

    /** In the order of the list. MANDATORY: without a transaction that commits it with its cause, there is no message. */
    @Transactional(propagation = Propagation.MANDATORY)
    public void publish(List<Message> messages) {
        jdbc.batchUpdate(INSERT, messages, 100, (row, message) -> {
            row.setString(1, message.topic());
            row.setString(2, message.key());
            row.setString(3, json.writeValueAsString(message.payload()));
            row.setString(4, message.headers() == null ? null : json.writeValueAsString(message.headers()));
            row.setString(5, message.traceparent());
        });
    }
}
