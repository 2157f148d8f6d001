package ai.synheart.auth.backend;

import java.time.Instant;
import java.util.Map;

/**
 * The content of a device token.
 *
 * @param deviceKey the device's public key as a JWK
 */
public record DeviceToken(
    String deviceID, String appID, String audience, String channel, String platform, Assurance assurance, Instant issuedAt,
    Instant expiresAt, String tokenID, Map<String, Object> deviceKey) {
}
