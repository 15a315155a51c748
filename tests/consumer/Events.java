import io.cloudevents.core.provider.EventFormatProvider;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.kafka.KafkaMessageFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints each event of topics of one partition as the SDK reads it: the topic, a tab, and the JSON of the specification, one a line. */
public class Events {
    public static void main(String[] args) {
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0]);
        try (KafkaConsumer<String, byte[]> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : Arrays.asList(args).subList(1, args.length)) {
                print(consumer, new TopicPartition(topic, 0));
            }
        }
    }

    private static void print(KafkaConsumer<String, byte[]> consumer, TopicPartition partition) {
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        long end = consumer.endOffsets(List.of(partition)).get(partition);
        while (consumer.position(partition) < end) {
            for (ConsumerRecord<String, byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                // Not by a deserializer: the client calls none for a tombstone.
                var event = KafkaMessageFactory.createReader(record).toEvent();
                byte[] json = EventFormatProvider.getInstance().resolveFormat(JsonFormat.CONTENT_TYPE).serialize(event);
                System.out.println(partition.topic() + "\t" + new String(json, StandardCharsets.UTF_8));
            }
        }
    }
}
