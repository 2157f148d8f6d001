package ai.synheart.auth.backend;

/** The device that signed a request. */
public record Identity(String appID, String deviceID, String platform, Assurance assurance, int signatureScheme, long keyAgeSeconds) {
}
