package ai.synheart.auth.identity

import ai.synheart.auth.KeyRotation
import ai.synheart.auth.Remedy
import ai.synheart.auth.RetryPolicy
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.BackOff
import ai.synheart.auth.concurrency.resetMeanwhile
import ai.synheart.auth.remedy

/**
 * Runs up to three attempts at a rotation while the service cannot be reached, and up to four while the attestation provider cannot
 * answer. Holds no lock between them.
 */
internal class RotationCycle(private val context: IdentityContext, private val reason: RotationReason, private val backOff: BackOff) {
    suspend fun run(): KeyRotation {
        val before = context.ledger.load()
        val rotator = Rotator(context)
        var attempt = 0
        var refusals = 0
        while (true) {
            try {
                return context.exclusively {
                    if (backOff.isEnded) throw resetMeanwhile()
                    // A process that rotated meanwhile may have died before it deleted the old key.
                    rotationOfAnother(before)?.also { rotator.disposeLeftover() } ?: rotator.attempt(reason)
                }
            } catch (error: SynheartAuthException) {
                val delay = when (error.remedy) {
                    Remedy.BACK_OFF -> RetryPolicy.ROTATION.delay(attempt++, 0.0, error.retryAfter)
                    Remedy.ASK_PROVIDER_AGAIN -> RetryPolicy.PROVIDER.delay(refusals++, 0.0)
                    else -> null
                }
                backOff.pause(delay ?: throw error) { error }
            }
        }
    }

    /**
     * The rotation that another process finished while this process waited for the lock. After a compromise it is not enough: the
     * record does not show for which reason the other process rotated.
     */
    private suspend fun rotationOfAnother(before: IdentityRecord): KeyRotation? {
        if (reason == RotationReason.COMPROMISE) return null
        val now = context.ledger.load()
        if (now.deviceId == null || now.deviceId != before.deviceId || now.identity != Identity.ACTIVE) return null
        return if (now.key == before.key) null else now.keyRotatedAt?.let { KeyRotation(now.deviceId, it) }
    }
}

/** Whether a rotation with this reason does what one with the other reason would do. */
internal fun RotationReason.covers(other: RotationReason): Boolean = this == RotationReason.COMPROMISE || other == RotationReason.SCHEDULED

/**
 * When a rotation is due: on demand, or after 81 to 90 days. The exact age depends on the device id, so that devices
 * that were registered together rotate at different times.
 */
internal object RotationSchedule {
    private const val AGE_SECONDS = 90L * 86_400
    private const val JITTER_SECONDS = 9L * 86_400

    /** The largest difference of two clocks. A key that is dated further in the future was dated by a wrong clock, and is due. */
    private const val SKEW_SECONDS = 86_400L

    fun isDue(record: IdentityRecord, nowSeconds: Long): Boolean {
        if (record.identity != Identity.ACTIVE || record.deviceId == null) return false
        if (record.rotationDemand != null) return true
        val since = record.keyRotatedAt ?: record.registeredAt ?: return false
        // The id is random, so its first digits spread devices evenly, and are the same at every launch.
        val draw = record.deviceId.substring(0, 8).toLong(16)
        return nowSeconds - since !in -SKEW_SECONDS..<AGE_SECONDS - draw % JITTER_SECONDS
    }
}
