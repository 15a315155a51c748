import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Has a broker take the tokens that Amazon MSK takes: URLs that were signed by Signature Version 4 with a key that it knows. Keys
 * are in the file keys.properties of the broker's directory, read for each token: ID = SECRET SESSION END, the end in milliseconds.
 */
public final class SignedUrls implements AuthenticateCallbackHandler {
    private static final String HOST = "kafka.eu-central-1.amazonaws.com";
    private static final Set<String> NAMES = Set.of("Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
        "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders", "User-Agent");
    private static final DateTimeFormatter STAMP = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
    }

    @Override
    public void close() {
    }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (!(callback instanceof OAuthBearerValidatorCallback asked)) {
                throw new UnsupportedCallbackException(callback);
            }
            try {
                asked.token(verified(asked.tokenValue(), Instant.now()));
            } catch (GeneralSecurityException | IOException | RuntimeException refused) {
                System.err.println("token refused: " + refused);
                asked.error("invalid_token", null, null);
            }
        }
    }

    private static Token verified(String value, Instant now) throws GeneralSecurityException, IOException {
        String url = new String(Base64.getUrlDecoder().decode(value), StandardCharsets.UTF_8);
        String begin = "https://" + HOST + "/?";
        check(url.startsWith(begin), "URL");
        // As they stand, encoded: so they are signed.
        Map<String, String> query = new TreeMap<>();
        for (String pair : url.substring(begin.length()).split("&")) {
            String[] parts = pair.split("=", 2);
            check(query.put(parts[0], parts[1]) == null, "name twice");
        }
        check(query.keySet().equals(NAMES), "names");
        check(query.get("Action").equals("kafka-cluster%3AConnect"), "action");
        check(query.get("X-Amz-Algorithm").equals("AWS4-HMAC-SHA256"), "algorithm");
        check(query.get("X-Amz-SignedHeaders").equals("host"), "signed headers");
        check(query.get("X-Amz-Expires").equals("900"), "expiry");
        Instant signed = Instant.from(STAMP.parse(query.get("X-Amz-Date")));
        check(Duration.between(signed, now).abs().compareTo(Duration.ofMinutes(5)) < 0, "date");

        String[] credential = query.get("X-Amz-Credential").split("%2F");
        String scope = query.get("X-Amz-Date").substring(0, 8) + "/eu-central-1/kafka-cluster/aws4_request";
        check(credential.length == 5 && String.join("/", List.of(credential).subList(1, 5)).equals(scope), "scope");
        Properties keys = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of("keys.properties"))) {
            keys.load(reader);
        }
        String known = keys.getProperty(credential[0]);
        check(known != null, "key " + credential[0]);
        String[] key = known.split(" ");
        check(query.get("X-Amz-Security-Token").equals(key[1]), "session");
        Instant end = Instant.ofEpochMilli(Long.parseLong(key[2]));
        check(now.isBefore(end), "end of the key");

        String signature = query.remove("X-Amz-Signature");
        query.remove("User-Agent");
        check(signature.equals(signature(query, scope, key[0])), "signature");
        return new Token(value, signed.toEpochMilli(), Math.min(signed.plusSeconds(900).toEpochMilli(), end.toEpochMilli()));
    }

    private static String signature(Map<String, String> query, String scope, String secret) throws GeneralSecurityException {
        StringBuilder canonical = new StringBuilder("GET\n/\n");
        query.forEach((name, value) -> canonical.append(name).append('=').append(value).append('&'));
        canonical.setLength(canonical.length() - 1);
        canonical.append("\nhost:").append(HOST).append("\n\nhost\n").append(hash(""));
        String text = "AWS4-HMAC-SHA256\n" + query.get("X-Amz-Date") + "\n" + scope + "\n" + hash(canonical.toString());
        byte[] key = ("AWS4" + secret).getBytes(StandardCharsets.UTF_8);
        for (String part : scope.split("/")) {
            key = hmac(key, part);
        }
        return HexFormat.of().formatHex(hmac(key, text));
    }

    private static byte[] hmac(byte[] key, String text) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hash(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException(missing);
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalArgumentException(what);
        }
    }

    private record Token(String value, long start, long lifetimeMs) implements OAuthBearerToken {
        /** Of the role, whose keys change: a connection may not change its principal. */
        @Override
        public String principalName() {
            return "relay";
        }

        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public Long startTimeMs() {
            return start;
        }
    }
}
