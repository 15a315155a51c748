import java.io.IOException;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler;

/**
 * Has a broker take tokens by Kafka's own validator, and only with these SASL extensions (KIP-342). Kafka's own takes any.
 */
public final class Extensions implements AuthenticateCallbackHandler {
    private static final Map<String, String> WANTED = Map.of("logicalCluster", "lkc-1", "identityPoolId", "pool-1");

    private final AuthenticateCallbackHandler tokens = new OAuthBearerValidatorCallbackHandler();

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        tokens.configure(configs, mechanism, entries);
    }

    @Override
    public void close() {
        tokens.close();
    }

    @Override
    public void handle(Callback[] callbacks) throws IOException, UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerExtensionsValidatorCallback asked) {
                compare(asked);
            } else {
                tokens.handle(new Callback[] {callback});
            }
        }
    }

    private static void compare(OAuthBearerExtensionsValidatorCallback asked) {
        Map<String, String> sent = asked.inputExtensions().map();
        if (!sent.equals(WANTED)) {
            System.err.println("extensions refused: " + sent);
            asked.error("logicalCluster", "not of this broker");
            return;
        }
        sent.keySet().forEach(asked::valid);
    }
}
