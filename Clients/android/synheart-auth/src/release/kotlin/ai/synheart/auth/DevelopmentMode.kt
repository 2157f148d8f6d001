package ai.synheart.auth

/** Release builds have no development mode. */
@Suppress("UNUSED_PARAMETER")
internal fun developmentHeader(provider: AttestationProvider): Pair<String, String>? = null
