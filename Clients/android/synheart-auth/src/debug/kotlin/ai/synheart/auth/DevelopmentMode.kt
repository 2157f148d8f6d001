package ai.synheart.auth

/**
 * Development mode, for emulators and CI. Release builds do not contain it: there is no run-time switch. The service accepts it
 * only for an app on channel `dev` or `staging` whose record allows it (`development_integrity_allowed`).
 */
public object DevelopmentAttestation : AttestationProvider {
    /** The fixed proof. The service also demands a key proof. */
    override suspend fun attest(subject: AttestationSubject): AttestationEvidence = AttestationEvidence(proof = "development")
}

/** The header that marks a request of development mode. */
internal fun developmentHeader(provider: AttestationProvider): Pair<String, String>? =
    if (provider === DevelopmentAttestation) "X-Synheart-Dev-Mode" to "true" else null
