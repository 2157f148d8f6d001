package ai.synheart.auth.identity

import ai.synheart.auth.IdentityState
import ai.synheart.auth.IdentityState.*
import ai.synheart.auth.invalidTransition

/** The causes of transitions. */
internal enum class Cause(val wire: String) {
    CHALLENGE("challenge"),
    KEY("key"),
    ATTEMPT("attempt"),
    SUCCESS("success"),
    FAILURE("failure"),
    ROTATION("rotation"),
    ROTATION_END("rotationEnd"),
    KEY_LOSS("keyLoss"),
    WIPE("wipe"),
    RESET("reset"),
}

/** The allowed transitions (RFC-AUTH-MOBILE-0001; state machine page). Everything else is `INVALID_STATE_TRANSITION`. */
internal object StateTable {
    class Row(val from: IdentityState, val cause: Cause, val to: IdentityState)

    val rows = listOf(
        Row(UNREGISTERED, Cause.CHALLENGE, CHALLENGE_RECEIVED),
        Row(CHALLENGE_RECEIVED, Cause.KEY, KEY_READY),
        Row(KEY_READY, Cause.ATTEMPT, REGISTERING),
        Row(REGISTERING, Cause.SUCCESS, REGISTERED),
        Row(REGISTERING, Cause.FAILURE, UNREGISTERED),
        Row(REGISTERED, Cause.ROTATION, REGISTERING),
        Row(REGISTERING, Cause.ROTATION_END, REGISTERED),
        Row(REGISTERED, Cause.KEY_LOSS, KEY_INVALID),
        Row(KEY_INVALID, Cause.WIPE, UNREGISTERED),
        // Failures before the request is sent: an expired challenge, a refused attestation.
        Row(CHALLENGE_RECEIVED, Cause.FAILURE, UNREGISTERED),
        Row(KEY_READY, Cause.FAILURE, UNREGISTERED),
    ) +
        // Only resetDeviceIdentity causes these transitions.
        IdentityState.entries.map { Row(it, Cause.RESET, UNREGISTERED) }

    /** The state that [cause] leads to. */
    fun next(state: IdentityState, cause: Cause): IdentityState =
        rows.find { it.from == state && it.cause == cause }?.to
            ?: throw invalidTransition(state, rows.first { it.cause == cause }.to)
}
