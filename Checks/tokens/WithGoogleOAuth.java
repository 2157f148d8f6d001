// Device tokens with Google's OAuth client. docs/tokens.md shows DeviceTokens. WithGoogleOAuth talks to check.py.

import com.google.api.client.auth.openidconnect.IdToken;
import com.google.api.client.auth.openidconnect.IdTokenVerifier;
import com.google.api.client.http.GenericUrl;
import com.google.api.client.http.javanet.NetHttpTransport;
import com.google.api.client.json.GenericJson;
import com.google.api.client.json.JsonObjectParser;
import com.google.api.client.json.gson.GsonFactory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.security.GeneralSecurityException;
import java.util.List;

class WithGoogleOAuth {
    interface Check {
        IdToken.Payload of(String token) throws Exception;
    }

    static String verdict(Check check, String token) {
        try {
            return "{\"device\": \"" + check.of(token).getSubject() + "\"}";
        } catch (Exception refused) {
            return "{\"refused\": \"" + refused.getClass().getSimpleName() + "\"}";
        }
    }

    public static void main(String[] arguments) throws Exception {
        var tokens = new DeviceTokens(arguments[0], arguments[1], arguments[2], arguments[3]);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String library = verdict(token -> {
                IdToken parsed = IdToken.parse(GsonFactory.getDefaultInstance(), token);
                if (!tokens.verifier.verify(parsed)) throw new GeneralSecurityException();
                return parsed.getPayload();
            }, line);
            System.out.println("{\"library\": " + library + ", \"page\": " + verdict(tokens::check, line) + "}");
        }
    }
}

/** Checks device tokens. Keep one for the life of the process: it caches the keys. */
final class DeviceTokens {
    final IdTokenVerifier verifier;
    private final String tokenType;
    private final String channel;

    DeviceTokens(String issuer, String audience, String tokenType, String channel) throws IOException {
        var request = new NetHttpTransport().createRequestFactory()
            .buildGetRequest(new GenericUrl(issuer + "/.well-known/openid-configuration")).setReadTimeout(5000)
            .setParser(new JsonObjectParser(GsonFactory.getDefaultInstance()));
        GenericJson document = request.execute().parseAs(GenericJson.class);
        if (!issuer.equals(document.get("issuer"))) throw new IOException(issuer + " calls itself " + document.get("issuer"));
        // The default is to accept a token for 300 s after its end.
        verifier = new IdTokenVerifier.Builder().setIssuer(issuer).setAudience(List.of(audience))
            .setCertificatesLocation((String) document.get("jwks_uri")).setAcceptableTimeSkewSeconds(5).build();
        this.tokenType = tokenType;
        this.channel = channel;
    }

    /** Returns the claims; the subject is the device id. */
    IdToken.Payload check(String token) throws GeneralSecurityException {
        try {
            IdToken parsed = IdToken.parse(GsonFactory.getDefaultInstance(), token);
            // The library checks neither type nor channel.
            if (verifier.verify(parsed) && tokenType.equals(parsed.getHeader().getType())
                && channel.equals(parsed.getPayload().get("channel"))) return parsed.getPayload();
        } catch (IOException | RuntimeException malformed) {
            throw new GeneralSecurityException("the token is malformed", malformed);
        }
        throw new GeneralSecurityException("the token is not one of this backend");
    }
}
